//gosec:disable G115 -- counts, far below their limits
package verdict

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Circumstances are facts about a run that only k6 has.
type Circumstances struct {
	Dropped  uint64        // dropped iterations
	Unserved uint64        // arrivals of an open executor that never had an iteration
	CPU      float64       // the share of its CPUs that the process used, 0 to 1
	Ended    string        // why the test ended early, as a variant of [reason.EndedEarly]; "" if it did not
	After    time.Duration // how long after its start it ended
	WarmUp   time.Duration // how long nothing was to be in the measured window
}

const (
	// saturated is the share of its CPUs above which a generator measures itself.
	saturated = 0.9
	// minorLoss is the share of messages that may fail, or reach no consumer, in a valid run.
	minorLoss = 0.001
)

// judge makes the verdict of a result.
type judge struct {
	*result.Verdict
	result *result.Result
	led    *result.Result // in the leading phase
}

func (j *judge) invalid(at place, code reason.Code, values facts) {
	j.Add(at.reason(code, reason.Invalid, values))
}

func (j *judge) note(at place, code reason.Code, values facts) {
	j.Add(at.reason(code, reason.Note, values))
}

// byShare adds a reason about messages: invalid if their share is greater than [minorLoss].
func (j *judge) byShare(at place, code reason.Code, n, total int64, values facts) {
	if n <= 0 {
		return
	}
	level := reason.Note
	if share(n, total) > minorLoss {
		level = reason.Invalid
	}
	counted := facts{"count": n, "share": share(n, total)}
	maps.Copy(counted, values)
	j.Add(at.reason(code, level, counted))
}

// Judge sets the percentiles and the verdict: of the leading phase's latencies, and the account.
func Judge(r *result.Result, c Circumstances) {
	Describe(r)
	r.Dropped, r.Unserved, r.CPU = c.Dropped, c.Unserved, c.CPU
	r.Verdict = result.Verdict{
		Valid: true, Latencies: true, Account: true, Of: r.Leading, Reasons: []reason.Reason{}, Beliefs: []result.Belief{},
	}
	j := &judge{&r.Verdict, r, r.Led()}
	j.judgeArrivals()
	j.judgeProcess()
	j.judgeEnd(c)
	j.judgeWindow(c)
	led := topicsOf(j.led)
	for i, t := range topicsOf(r) {
		j.judgeTopic(t, led[i])
	}
}

// judgeArrivals adds the arrivals that had no iteration.
func (j *judge) judgeArrivals() {
	r := j.result
	if r.Unserved > 0 {
		j.invalid(place{}, reason.ArrivalsDropped, facts{"why": "unserved", "count": r.Unserved})
	}
	if r.Dropped == 0 {
		return
	}
	if r.Test.Runs("per-vu-iterations", "shared-iterations") && !r.Test.Runs(k6Arrivals...) {
		j.note(place{}, reason.ArrivalsDropped, facts{"why": "max-duration", "count": r.Dropped})
		return
	}
	j.invalid(place{}, reason.ArrivalsDropped, facts{"why": "no-vu", "count": r.Dropped})
}

// judgeProcess adds the faults of one of several processes.
func (j *judge) judgeProcess() {
	r := j.result
	if s := r.Segment; s != nil {
		if s.Nameless {
			j.invalid(place{}, reason.ProcessesDiffer, facts{"why": "no-run", "detail": s.Of})
		}
		for _, scenario := range s.Idle {
			j.invalid(place{}, reason.LoadIncomplete, facts{"why": "idle", "scenario": scenario, "segment": s.Of})
		}
	}
	if r.Processes > 1 && r.Siblings >= r.Processes {
		j.invalid(place{}, reason.EarlierTest, facts{"why": "processes", "count": r.Siblings, "processes": r.Processes})
	}
	for _, name := range r.Missing {
		j.invalid(place{}, reason.ProcessMissing, facts{"why": "late", "name": name})
	}
	if r.Siblings > 0 && r.Clock == nil {
		j.note(place{}, reason.Clocks, facts{"why": "not-compared", "count": r.Siblings + 1})
	}
}

// judgeEnd adds the ways in which the test ended early, and a generator at its limit.
func (j *judge) judgeEnd(c Circumstances) {
	if c.Ended != "" {
		j.invalid(place{}, reason.EndedEarly, facts{"why": c.Ended, "after": c.After})
	}
	if cpu := busiest(j.result); cpu > saturated {
		j.invalid(place{}, reason.GeneratorSaturated, facts{"cpu": cpu, "window": recording.BusyWindow})
	}
}

// judgeWindow adds that nothing was measured, in the run or in the phase that counts.
func (j *judge) judgeWindow(c Circumstances) {
	switch r := j.result; {
	case !measured(r):
		j.invalid(place{}, reason.NothingMeasured, facts{"why": "nothing"})
	case c.WarmUp > 0 && r.Phase(result.Measure) == nil && len(r.Phases) < 2:
		j.invalid(place{}, reason.NoMeasuredWindow, facts{"why": "warm-up", "warmUp": c.WarmUp})
	case !measured(j.led):
		j.invalid(place{phase: r.Leading}, reason.NoMeasuredWindow, facts{"why": "empty"})
	case r.Leading == "" && r.Phase(result.WarmUp) != nil && len(r.Phases) > 1:
		j.note(place{}, reason.NoMeasuredWindow, facts{"why": "unnamed"})
	}
}

// measured reports whether anything was sent or received.
func measured(r *result.Result) bool {
	return slices.ContainsFunc(r.Topics, func(t result.Topic) bool {
		return t.Counts[recording.Sent.String()] > 0 || t.Counts[recording.Received.String()] > 0 || len(t.Errors) > 0
	})
}

// busiest returns the greatest share of its CPUs that the process used in the leading phase.
func busiest(r *result.Result) (most float64) {
	p := r.Phase(r.Leading)
	for _, t := range r.Topics {
		for _, i := range t.History {
			overlaps := func(s result.Stretch) bool { return i.At > s.From && i.At-i.Seconds < s.To }
			if p == nil || slices.ContainsFunc(p.Stretches, overlaps) {
				most = max(most, i.Busiest)
			}
		}
	}
	return most
}

// Overtaxed returns the reason why the load generator was at its limit; false if it was not.
func Overtaxed(v *result.Verdict) (why reason.Reason, ok bool) {
	for _, r := range v.Invalid() {
		if r.Code == reason.ArrivalsDropped || r.Code == reason.GeneratorSaturated {
			return r, true
		}
	}
	return reason.Reason{}, false
}

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

// addUnreliable adds the reason why a percentile, and perhaps every smaller one, is not reliable.
func (j *judge) addUnreliable(t topic, b result.Belief, name string, p result.Percentile, flaw string) {
	values := facts{"why": flaw, "latency": b.Label, "upTo": b.UpTo, "quantile": QuantileName(p.Q)}
	values["share"] = t.absent(name)
	if flaw == "late" {
		late, value := t.late(name, p.Q), time.Duration(p.Value)
		values["late"], values["value"], values["share"] = min(late, value), value, p.Owed
		maps.Copy(values, causes(j.result.Platform))
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

// busy is the share of the CPUs, or of the time, above which a user of them is named as a cause.
const busy = 0.1

// causes returns the shares of the machine's CPUs that may explain delay.
func causes(p *result.Platform) facts {
	if p == nil {
		return nil
	}
	found := facts{}
	all := map[string]*float64{"k6": p.Process, "others": p.Others, "steal": p.Steal, "waited": p.GroupPressure}
	for name, share := range all {
		if share != nil && *share > busy {
			found[name] = *share
		}
	}
	return found
}

// blurred reports whether clocks may be further apart than a tenth of a value.
func (t topic) blurred(trend string, value int64) bool {
	trend = strings.TrimSuffix(trend, recording.ClosedSuffix)
	if t.Apart == nil || trend != recording.E2ELatency.String() && trend != recording.E2ETime.String() {
		return false
	}
	return float64(t.Apart.Most()) > OwedShare*float64(value)
}

// judgeClocks adds how exact latencies between two clocks are. That is known to half of a round
// trip only, which is no fault of the test; clocks that are apart for certain are.
func (j *judge) judgeClocks(t topic) {
	if t.Apart == nil {
		return
	}
	values := facts{"why": "apart", "apart": time.Duration(t.Apart.Most()), "clocks": clocksText(t.Apart)}
	if !t.exact() {
		if t.Apart.Wrong() {
			values["why"] = "wrong"
			j.invalid(t.place(), reason.Clocks, values)
			return
		}
		j.Except = recording.E2ELatency.Title()
	} else if t.Apart.Same {
		return
	}
	j.note(t.place(), reason.Clocks, values)
}

// exact reports whether clocks leave a percentile of the end-to-end latency exact, or there is none.
func (t topic) exact() bool {
	exact := true
	for _, suffix := range suffixes {
		for _, p := range t.Percentiles[recording.E2ELatency.String()+suffix] {
			if p.Supported && !t.blurred(recording.E2ELatency.String(), p.Value) {
				return true
			}
			exact = exact && !p.Supported
		}
	}
	return exact
}
