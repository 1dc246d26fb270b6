package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Verdict says whether the numbers of a run can be believed, and why not.
type Verdict struct {
	Valid     bool     `json:"valid"`
	Latencies bool     `json:"latencies"` // nothing speaks against its latencies, as far as each is believed
	Account   bool     `json:"account"`   // nothing speaks against what it says of lost, duplicated and reordered messages
	Reasons   []string `json:"reasons"`   // why not valid
	Notes     []string `json:"notes"`     // what a reader must know all the same
}

// mergeTells ends what holds for one process only, and is for all of them together to say.
const mergeTells = "k6 x broker merge tells"

// Circumstances are what the engine cannot know of a run by itself.
type Circumstances struct {
	Dropped  uint64  // arrivals that k6 dropped because no VU was free
	Unserved uint64  // arrivals of an open executor that never had an iteration
	CPU      float64 // the share of its CPUs that the process used, 0 to 1
	Ended    string  // why the test ended before its time; "" where it did not
}

const (
	// saturated is the share of its CPUs beyond which a generator measures itself, in its worst window of so many seconds.
	saturated       = 0.9
	saturatedWindow = 5.0
	// trifle is the share of messages that may have failed, or been read by nobody, without a word against the run.
	trifle = 0.001
)

// about says what a reason speaks against.
type about uint8

const (
	latencies about = 1 << iota
	account
)

// Judge sets the verdict of a result.
func (r *Result) Judge(c Circumstances) {
	v := Verdict{Latencies: true, Account: true, Reasons: []string{}, Notes: []string{}}
	r.Dropped, r.Unserved, r.CPU = c.Dropped, c.Unserved, c.CPU
	if c.Dropped > 0 {
		v.because(latencies, "k6 dropped %d arrivals because no VU was free: the slowest moments are missing from the latencies; "+
			"raise preAllocatedVUs and maxVUs, or use the executor open-arrival-rate", c.Dropped)
	}
	if c.Unserved > 0 {
		v.because(latencies, "%d arrivals were due and never had an iteration: raise maxVUs or gracefulStop, or lower the rate", c.Unserved)
	}
	if c.Ended != "" {
		v.because(latencies|account, "%s", c.Ended)
	}
	if busiest := r.busiest(); busiest > saturated {
		v.because(latencies, "the generator used %.0f %% of its CPUs in its busiest %.0f seconds: it measured itself; lower the rate or give it more",
			100*busiest, saturatedWindow)
	}
	if !r.measured() {
		v.because(latencies|account, "nothing was measured")
	}
	for i := range r.Topics {
		r.Topics[i].judge(&v)
	}
	v.Valid = len(v.Reasons) == 0
	r.Verdict = v
}

func (v *Verdict) because(what about, format string, args ...any) {
	v.Latencies = v.Latencies && what&latencies == 0
	v.Account = v.Account && what&account == 0
	v.Reasons = append(v.Reasons, fmt.Sprintf(format, args...))
	v.Valid = false
}

func (v *Verdict) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// measured tells whether anything was sent or received.
func (r *Result) measured() bool {
	for _, t := range r.Topics {
		if t.Counts[Sent.String()] > 0 || t.Counts[Received.String()] > 0 || len(t.Errors) > 0 {
			return true
		}
	}
	return false
}

// busiest is the greatest share of its CPUs that the process used over a window in which something was due.
func (r *Result) busiest() (most float64) {
	for _, t := range r.Topics {
		var used, length float64
		var window []Point
		for _, p := range t.History {
			if p.Counts[Due.String()]+p.Counts[Received.String()] == 0 {
				continue
			}
			window = append(window, p)
			used, length = used+p.CPU*p.Seconds, length+p.Seconds
			for length-window[0].Seconds >= saturatedWindow-0.5 {
				used, length = used-window[0].CPU*window[0].Seconds, length-window[0].Seconds
				window = window[1:]
			}
			if length >= saturatedWindow-0.5 {
				most = max(most, used/length)
			}
		}
	}
	return most
}

func (t *TopicResult) judge(v *Verdict) {
	sent, confirmed, received := t.Counts[Sent.String()], t.Counts[Confirmed.String()], t.Counts[Received.String()]
	if n := t.Counts[Due.String()] - sent; n > 0 {
		v.because(latencies, "%s: %d messages were due and never sent, as the test ended first", t.Topic, n)
	}
	switch failed := t.errors("send") + t.errors("request"); {
	case len(t.Errors) > 0 && sent == 0 && received == 0:
		v.because(latencies|account, "%s: nothing was sent and nothing received: see its errors", t.Topic)
	case sent > 0 && confirmed == 0:
		v.because(latencies|account, "%s: none of %d messages was confirmed: see its errors", t.Topic, sent)
	case share(failed, sent) > trifle:
		v.because(latencies, "%s: %d of %d sends failed (%s): the latencies are those of the rest", t.Topic, failed, sent, percent(share(failed, sent)))
	case failed > 0:
		v.note("%s: %d of %d sends failed", t.Topic, failed, sent)
	}
	if t.declared && received == 0 && (sent > 0 || len(t.Groups) > 0) {
		v.because(account, "%s: it has a consumer that received nothing: neither end-to-end latency nor loss was measured", t.Topic)
	}
	t.judgeStrangers(v)
	for i := range t.Groups {
		t.judgeGroup(v, &t.Groups[i])
	}
	t.judgeLateness(v)
	if t.Info.Embedded {
		v.note("%s: embedded broker: it shares this process, so its latencies say nothing of a real one", t.Topic)
	}
	switch {
	case t.ClosedLoop && t.OpenLoop:
		v.note("%s: part of it was sent in a closed loop, which has rows of its own; the metrics of k6 tell them apart by the tag loop", t.Topic)
	case t.ClosedLoop:
		v.note("%s: closed loop: each send waited for room, so publish latency is service time and hides waiting", t.Topic)
	}
}

// judgeStrangers looks at messages that came in and are not accounted for here.
func (t *TopicResult) judgeStrangers(v *Verdict) {
	if n := t.Counts[Negative.String()]; n > 0 {
		v.because(latencies, "%s: %d messages arrived before they were sent, by the clocks of two machines", t.Topic, n)
	}
	if n := t.Counts[Earlier.String()]; n > 0 {
		which := ""
		if t.shared {
			which = "; which it was, " + mergeTells
		}
		v.because(latencies|account, "%s: %d messages were sent more than %v before the process that received them began, by an earlier test with the same "+
			"BROKER_RUN or by a process that began long before: they are in no latency; give each test a BROKER_RUN of its own, and start its processes "+
			"together%s", t.Topic, n, clockSkew, which)
	}
	if s := share(t.before, t.Counts[Received.String()]); s > trifle {
		v.because(latencies, "%s: %d messages (%s) were sent more than %v before the process that received them began: their latencies, the longest, "+
			"are not in the distribution; start the processes of a test together", t.Topic, t.before, percent(s), clockSkew)
	} else if t.before > 0 {
		v.note("%s: %d messages were sent more than %v before the process that received them began: they are in no latency", t.Topic, t.before, clockSkew)
	}
	if n := t.Counts[Aliased.String()]; n > 0 {
		v.because(account, "%s: %d messages of this topic came in at %s and were sent to another address: if it is one broker, name it by one URL, "+
			"for what was lost of them is not known", t.Topic, n, t.Broker)
	}
	if n := t.Counts[Unaccounted.String()]; n > 0 {
		v.note("%s: %d messages were sent without a stamp: they are in no end-to-end latency and no account", t.Topic, n)
	}
	if n := t.Counts[Foreign.String()]; n > 0 {
		v.note("%s: %d messages of other tests were received: they are in no latency, but took the consumers' time", t.Topic, n)
	}
	if n := t.Counts[Routed.String()]; n > 0 {
		v.note("%s: %d messages came by way of another topic of this test: dead letters, wildcards or what was forwarded", t.Topic, n)
	}
}

func (t *TopicResult) judgeGroup(v *Verdict, g *GroupResult) {
	name := t.Topic
	if g.Group != "" {
		name += ", " + g.Group
	}
	if s := share(int64(g.Drained), int64(g.Expected)); s > trifle {
		v.because(latencies, "%s: %d messages (%s) reached no consumer of the test and were read at its end to complete the account: their latencies, "+
			"the longest, are not in the distribution; let the consumers go on for longer, or give them more capacity", name, g.Drained, percent(s))
	} else if g.Drained > 0 {
		v.note("%s: %d messages were read at the end of the test to complete the account, by none of its consumers", name, g.Drained)
	}
	if s := share(int64(g.Undelivered), int64(g.Expected)); s > trifle {
		v.because(latencies, "%s: %d messages (%s) were still at the broker when the test ended: their latencies, the longest, are not in the distribution%s",
			name, g.Undelivered, percent(s), t.unless())
	}
	if g.Uncertain > 0 {
		v.because(account, "%s: %d messages did not arrive, and it cannot be told whether the broker still has them or they are lost%s",
			name, g.Uncertain, t.unless())
	}
	switch {
	case g.Elsewhere > 0 && t.shared:
		v.note("%s: %d messages were received by another process of the test, or lost: %s", name, g.Elsewhere, mergeTells)
	case g.Elsewhere > 0:
		v.because(account, "%s: %d messages did not arrive here: they are lost, or somebody has them whose account is not here", name, g.Elsewhere)
	}
}

// unless ends what may be otherwise where other processes of the test have a say.
func (t *TopicResult) unless() string {
	if !t.shared {
		return ""
	}
	return ", unless another process received them: " + mergeTells
}

// judged are the latencies that a run is about, as a reader calls them.
var judged = []struct { //nolint:gochecknoglobals // a table
	trend Trend
	label string
}{{PublishLatency, "publish latency"}, {RequestLatency, "request latency"}, {E2ELatency, "end-to-end latency"}}

// judgeLateness says how far each latency can be believed.
func (t *TopicResult) judgeLateness(v *Verdict) {
	for _, j := range judged {
		all := t.Percentiles[j.trend.String()]
		if len(all) == 0 || !all[0].Supported {
			continue
		}
		q, ok := believedUpTo(all)
		if !ok {
			v.because(latencies, "%s: not even the median of the %s can be believed: %s", t.Topic, j.label, t.doubt(j.trend, all[0]))
			continue
		}
		for _, p := range all {
			if p.Supported && !p.Believed && p.Q > q && p.Q < 1 {
				v.note("%s: %s can be believed up to %s: %s", t.Topic, j.label, quantileName(q), t.doubt(j.trend, p))
				break
			}
		}
		t.noteOwed(v, j.label, all)
	}
	if lag, own := t.Trends[ScheduleLag.String()], t.Trends[GeneratorLag.String()]; lag != nil && own != nil &&
		lag.Quantile(0.99) > 2*max(own.Quantile(0.99), int64(owedFloor)) {
		v.note("%s: sends waited for a free VU or for room in the window; their latency counts from when they were due", t.Topic)
	}
}

// doubt says why a percentile is not believed.
func (t *TopicResult) doubt(trend Trend, p Percentile) string {
	late := t.late(trend.String(), p.Q)
	if p.Owed > OwedShare && late > owedFloor {
		return fmt.Sprintf("%s of its %s, %v, is lateness of the generator or of its machine, %v; lower the rate, or use a machine that is less busy",
			percent(p.Owed), quantileName(p.Q), round(p.Value), round(int64(late)))
	}
	text := fmt.Sprintf("%s of the messages, the slowest, are not in it", percent(t.absent(trend.String(), nil)))
	if trend == E2ELatency {
		text += t.unless()
	}
	return text
}

// noteOwed names the percentiles that can be believed and owe a good part to the generator all the same.
func (t *TopicResult) noteOwed(v *Verdict, label string, all []Percentile) {
	var parts []string
	for _, p := range all {
		if p.Believed && p.Owed > OwedShare && p.Q < 1 {
			parts = append(parts, fmt.Sprintf("%s of its %s", percent(p.Owed), quantileName(p.Q)))
		}
	}
	if len(parts) > 0 {
		v.note("%s: of the %s, %s is lateness of the generator or of its machine, less than %v", t.Topic, label, strings.Join(parts, ", "), owedFloor)
	}
}

func round(ns int64) time.Duration {
	d := time.Duration(ns)
	if d > time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}

func percent(share float64) string {
	p := 100 * share
	if p >= 10 {
		return fmt.Sprintf("%.0f %%", p)
	}
	digits := 1 - int(math.Floor(math.Log10(p))) // two significant ones
	return strconv.FormatFloat(p, 'f', max(0, digits), 64) + " %"
}

// quantileName is how people write a quantile: p99.9.
func quantileName(q float64) string {
	if q == 1 {
		return "maximum"
	}
	return "p" + strconv.FormatFloat(math.Round(q*1e8)/1e6, 'f', -1, 64)
}
