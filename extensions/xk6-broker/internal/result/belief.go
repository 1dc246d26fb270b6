package result

import (
	"cmp"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// judged are the latencies that a verdict is about.
var judged = []recording.Trend{recording.PublishLatency, recording.RequestLatency, recording.E2ELatency}

// Belief is how far a latency is reliable. If more than samples limits it, a reason
// [reason.PercentileNotReliable] of the topic says what.
type Belief struct {
	Topic string  `json:"topic"`
	Label string  `json:"label"` // the latency, as a reader calls it
	UpTo  float64 `json:"upTo"`  // the greatest reliable quantile that a result spells out; 0: not even the median
}

// latency is one of the judged latencies of a topic, in one loop.
type latency struct{ name, label string }

func (t *Topic) latencies() (all []latency) {
	for _, j := range judged {
		for _, suffix := range t.loops() {
			l := latency{j.String() + suffix, j.Title()}
			if suffix != "" {
				l.label += " of the closed loop"
			}
			all = append(all, l)
		}
	}
	return all
}

// judgeLateness adds how far each latency is reliable.
func (t *Topic) judgeLateness(v *Verdict) {
	for _, l := range t.latencies() {
		all := t.Percentiles[l.name]
		if len(all) == 0 || !all[0].Supported {
			continue
		}
		b := Belief{Topic: t.name(), Label: l.label}
		var ok bool
		b.UpTo, ok = reliableUpTo(all)
		if !ok {
			t.addUnreliable(v, reason.Invalid, b, l.name, all[0])
		}
		for _, p := range all {
			if ok && p.Supported && !p.sound && p.Q < 1 {
				t.addUnreliable(v, reason.Note, b, l.name, p)
				if v.UpTo == 0 || b.UpTo < v.UpTo {
					v.UpTo = b.UpTo
				}
				break
			}
		}
		v.Beliefs = append(v.Beliefs, b)
	}
	lag, own := t.Trends[recording.ScheduleLag.String()], t.Trends[recording.GeneratorLag.String()]
	if lag != nil && own != nil && lag.Quantile(0.99) > 2*max(own.Quantile(0.99), int64(owedFloor)) {
		v.note(t.subject(), reason.WaitedForVU, nil)
	}
}

// addUnreliable adds the reason why a percentile is not reliable.
func (t *Topic) addUnreliable(v *Verdict, level reason.Level, b Belief, name string, p Percentile) {
	values := reason.Values{"latency": b.Label, "upTo": b.UpTo, "quantile": QuantileName(p.Q)}
	if late := t.late(name, p.Q); p.Owed > OwedShare && late > owedFloor {
		why, cpu := v.platform.cause(late, t.hiccup(p.Q))
		values["why"], values["cpu"], values["late"], values["value"], values["share"] = why, cpu, min(late, time.Duration(p.Value)), time.Duration(p.Value), p.Owed
	} else {
		values["why"], values["share"] = "missing", t.absent(name)
	}
	v.Add(t.subject().reason(reason.PercentileNotReliable, level, values))
}

// Platform is the state of the machine while messages were sent or received. The shares are those of the worst five
// seconds, 0 to 1, and absent if the platform does not report them.
type Platform struct {
	Hiccups       *hist.Histogram `json:"hiccups"`                 // delays of a thread that wakes every millisecond, ns
	Process       *float64        `json:"process,omitempty"`       // of its CPUs (GOMAXPROCS), used by this process
	Host          *float64        `json:"host,omitempty"`          // of the CPUs that the process may run on, used by all processes
	Others        *float64        `json:"others,omitempty"`        // of the same CPUs, used by all other processes
	Steal         *float64        `json:"steal,omitempty"`         // of the same CPUs, given to other machines by the hypervisor
	Pressure      *float64        `json:"pressure,omitempty"`      // of the time, some task of the machine waited for a CPU
	GroupPressure *float64        `json:"groupPressure,omitempty"` // the same of the process's cgroup: its own limit shows here
}

// Seen returns the hiccups; nil without a monitor.
func (p *Platform) Seen() *hist.Histogram {
	if p == nil {
		return nil
	}
	return p.Hiccups
}

// join returns the worse of two machines. A measurement sets the hiccups.
func (p *Platform) join(o *Platform) *Platform {
	if p == nil || o == nil {
		return cmp.Or(p, o)
	}
	worse := func(a, b *float64) *float64 {
		if a == nil || b != nil && *b > *a {
			return b
		}
		return a
	}
	return &Platform{
		Process: worse(p.Process, o.Process), Host: worse(p.Host, o.Host), Others: worse(p.Others, o.Others),
		Steal: worse(p.Steal, o.Steal), Pressure: worse(p.Pressure, o.Pressure), GroupPressure: worse(p.GroupPressure, o.GroupPressure),
	}
}

// cause returns why the generator was late, as a variant of [reason.PercentileNotReliable], and the share of the
// CPUs that shows it. If a thread that only wakes was on time, the script's own work is the cause.
func (p *Platform) cause(late, hiccup time.Duration) (why string, cpu float64) {
	const busy, stolen, waiting = 0.7, 0.05, 0.25
	value := func(share *float64) float64 {
		if share == nil {
			return 0
		}
		return *share
	}
	if p == nil {
		p = &Platform{}
	}
	hypervisor, others := value(p.Steal), value(p.Others)
	switch {
	case hypervisor > stolen && hypervisor >= others:
		return "hypervisor", hypervisor
	case others > waiting:
		return "others", others
	case value(p.Process) > busy:
		return "k6", *p.Process
	case value(p.GroupPressure) > waiting:
		return "cgroup", *p.GroupPressure
	case late > 2*hiccup:
		return "script", 0
	}
	return "machine", 0
}
