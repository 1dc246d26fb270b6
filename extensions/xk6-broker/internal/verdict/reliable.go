package verdict

import (
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// latency is one of the latencies of a topic that a verdict is about, in one loop.
type latency struct{ name, label string }

func latencies() (all []latency) {
	for _, t := range []recording.Trend{recording.PublishLatency, recording.RequestLatency, recording.E2ELatency} {
		all = append(all, latency{t.String(), t.Title()}, latency{t.In(recording.Closed), t.Title() + " of the closed loop"})
	}
	return all
}

// judgeLateness adds how far each latency is reliable.
func (j *judge) judgeLateness(t topic) {
	for _, l := range latencies() {
		h := t.Trends[l.name]
		if h == nil || !h.Supported(quantiles[0]) {
			continue
		}
		all, missing := h.Percentiles(quantiles), t.absent(l.name)
		b := result.Belief{Topic: t.name, Label: l.label}
		for _, p := range all {
			flaw := t.flaw(l.name, p, missing)
			if !p.Supported || flaw != "" {
				if p.Supported {
					j.addUnreliable(t, b, l.name, result.Percentile{Percentile: p, Owed: t.owed(l.name, p)}, flaw)
				}
				break
			}
			b.UpTo = p.Q
		}
		j.Beliefs = append(j.Beliefs, b)
	}
	lag, own := t.Trends[recording.ScheduleLag.String()], t.Trends[recording.GeneratorLag.String()]
	if lag != nil && own != nil && lag.Quantile(0.99) > 2*max(own.Quantile(0.99), int64(owedFloor)) {
		j.note(t.place(), reason.WaitedForVU, nil)
	}
}

// addUnreliable adds the reason why a percentile is not reliable. The result is not valid if no smaller one is.
func (j *judge) addUnreliable(t topic, b result.Belief, name string, p result.Percentile, flaw string) {
	values := reason.Values{"why": flaw, "latency": b.Label, "upTo": b.UpTo, "quantile": QuantileName(p.Q), "share": t.absent(name)}
	if flaw == "late" {
		late, value := t.late(name, p.Q), time.Duration(p.Value)
		values["why"], values["cpu"] = cause(j.result.Platform, late, t.hiccup(p.Q))
		values["late"], values["value"], values["share"] = min(late, value), value, p.Owed
	}
	if b.UpTo == 0 {
		j.invalid(t.place(), reason.PercentileNotReliable, values)
		return
	}
	j.note(t.place(), reason.PercentileNotReliable, values)
	if j.UpTo == 0 || b.UpTo < j.UpTo {
		j.UpTo = b.UpTo
	}
}

// cause returns why the generator was late, as a variant of [reason.PercentileNotReliable], and the share of the
// CPUs that shows it. If a thread that only wakes was on time, the script's own work is the cause.
func cause(p *result.Platform, late, hiccup time.Duration) (why string, cpu float64) {
	if p == nil {
		p = &result.Platform{}
	}
	for _, c := range []struct {
		why   string
		share *float64
		above float64
	}{{"hypervisor", p.Steal, 0.2}, {"others", p.Others, 0.25}, {"hypervisor", p.Steal, 0.05}, {"k6", p.Process, 0.7}, {"cgroup", p.GroupPressure, 0.25}} {
		if c.share != nil && *c.share > c.above {
			return c.why, *c.share
		}
	}
	if late > 2*hiccup {
		return "script", 0
	}
	return "machine", 0
}

// blurred reports whether clocks may be further apart than a tenth of a value of a trend that two of them measured.
func (t topic) blurred(trend string, value int64) bool {
	trend = strings.TrimSuffix(trend, recording.ClosedSuffix)
	if t.Apart == nil || trend != recording.E2ELatency.String() && trend != recording.E2ETime.String() {
		return false
	}
	return float64(t.Apart.Most()) > OwedShare*float64(value)
}

// judgeClocks adds how exact latencies between two clocks are. That is known to half of a round trip only, which is no
// fault of the test; clocks that are apart for certain are.
func (j *judge) judgeClocks(t topic) {
	if t.Apart == nil {
		return
	}
	values := reason.Values{"why": "apart", "apart": time.Duration(t.Apart.Most()), "clocks": clocksText(t.Apart)}
	exact, vague := 0, 0
	for _, suffix := range suffixes {
		for _, p := range t.Percentiles[recording.E2ELatency.String()+suffix] {
			switch {
			case !p.Supported:
			case t.blurred(recording.E2ELatency.String(), p.Value):
				vague++
			default:
				exact++
			}
		}
	}
	switch {
	case vague > 0 && exact == 0 && t.Apart.Wrong():
		values["why"] = "wrong"
		j.invalid(t.place(), reason.Clocks, values)
		return
	case vague > 0 && exact == 0:
		j.Except = recording.E2ELatency.Title()
	case vague == 0 && t.Apart.Same:
		return
	}
	j.note(t.place(), reason.Clocks, values)
}
