package result

import (
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// judged are the latencies that a run is about.
var judged = []recording.Trend{recording.PublishLatency, recording.RequestLatency, recording.E2ELatency}

// Belief is how far a latency is reliable. If more than samples limits it, a reason [reason.PercentileNotReliable] of the topic says what.
type Belief struct {
	Topic string  `json:"topic"`
	Label string  `json:"label"` // the latency, as a reader calls it
	UpTo  float64 `json:"upTo"`  // the greatest quantile that is reliable, of those that a result spells out; 0: not even the median
}

// judgeLateness says how far each latency is reliable.
func (t *Topic) judgeLateness(v *Verdict) {
	for _, j := range judged {
		for _, suffix := range t.loops() {
			name, label := j.String()+suffix, j.Title()
			if suffix != "" {
				label += " of the closed loop"
			}
			all := t.Percentiles[name]
			if len(all) == 0 || !all[0].Supported {
				continue
			}
			b := Belief{Topic: t.name(), Label: label}
			var ok bool
			if b.UpTo, ok = believedUpTo(all); !ok {
				t.doubt(v, reason.Invalid, b, name, all[0])
			} else if i := slices.IndexFunc(all, func(p Percentile) bool { return p.Supported && !p.sound && p.Q > b.UpTo && p.Q < 1 }); i >= 0 {
				t.doubt(v, reason.Note, b, name, all[i])
				if v.UpTo == 0 || b.UpTo < v.UpTo {
					v.UpTo = b.UpTo
				}
			}
			v.Beliefs = append(v.Beliefs, b)
		}
	}
	if lag, own := t.Trends[recording.ScheduleLag.String()], t.Trends[recording.GeneratorLag.String()]; lag != nil && own != nil &&
		lag.Quantile(0.99) > 2*max(own.Quantile(0.99), int64(owedFloor)) {
		v.note(t.subject(), reason.WaitedForVU, nil)
	}
}

// doubt adds why a percentile is not reliable. What lateness does to a latency is known, and each percentile says that it has it: that speaks against no latency as such.
func (t *Topic) doubt(v *Verdict, level reason.Level, b Belief, name string, p Percentile) {
	values := reason.Values{"latency": b.Label, "upTo": b.UpTo, "quantile": QuantileName(p.Q)}
	if late := t.late(name, p.Q, p.Value); p.Owed > OwedShare && late > owedFloor {
		why, cpu := v.platform.blame(late, t.hiccup(p.Q))
		values["why"], values["cpu"], values["late"], values["value"], values["share"] = why, cpu, min(late, time.Duration(p.Value)), time.Duration(p.Value), p.Owed
	} else {
		values["why"], values["share"] = "missing", t.absent(name, nil)
	}
	v.Add(t.subject().reason(reason.PercentileNotReliable, level, values))
}

// hiccup is how late the machine made a thread that only wakes, at a quantile; 0 where nobody knows.
func (t *Topic) hiccup(q float64) time.Duration {
	if t.Seen == nil || !t.Seen.Supported(q) {
		return 0
	}
	return time.Duration(t.Seen.Quantile(q))
}
