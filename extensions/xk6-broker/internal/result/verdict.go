//gosec:disable G115 -- counts, far below their limits
package result

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// Verdict says whether the numbers of a run can be believed, and why not.
type Verdict struct {
	Valid     bool     `json:"valid"`
	Of        string   `json:"of,omitempty"`     // the phase whose latencies it is on; "" for the whole run
	UpTo      float64  `json:"upTo,omitempty"`   // the greatest quantile up to which every latency can be believed; 0 where all that is supported can
	Except    string   `json:"except,omitempty"` // a latency of which nothing can be believed, as it was measured by two clocks of which too little is known; "" where there is none
	Latencies bool     `json:"latencies"`        // nothing speaks against its latencies, as far as each is believed
	Account   bool     `json:"account"`          // nothing speaks against what it says of lost, duplicated and reordered messages
	Reasons   []string `json:"reasons"`          // why not valid
	Notes     []string `json:"notes"`            // what a reader must know all the same
	Beliefs   []Belief `json:"beliefs"`          // how far each latency can be believed

	platform *Platform // that what is late is late on
}

// mergeTells ends what holds for one process only, and is for all of them together to say.
const mergeTells = "run k6 x broker merge to find out"

// Circumstances are what the engine cannot know of a run by itself.
type Circumstances struct {
	Dropped  uint64  // what k6 counts as dropped iterations
	Unserved uint64  // arrivals of an open executor that never had an iteration
	Stranded uint64  // VUs whose scripts were resumed no more after k6 had interrupted one
	CPU      float64 // the share of its CPUs that the process used, 0 to 1
	Ended    string  // why the test ended before its time; "" where it did not
	// WarmUp is how long nothing was to be in the measured window; 0 where nobody said.
	WarmUp time.Duration
}

const (
	// saturated is the share of its CPUs beyond which a generator measures itself, in its worst window.
	saturated = 0.9
	// SaturatedWindow is how long such a window is, in seconds.
	SaturatedWindow = 5.0
	// trifle is the share of messages that may have failed, or been read by nobody, without a word against the run.
	trifle = 0.001
)

// about says what a reason speaks against.
type about uint8

const (
	latencies about = 1 << iota
	account
)

// Judge sets the verdict of a result. Where a phase leads, it is on the latencies of that; what was lost, and all that nobody knows the time
// of, is the whole run's.
func (r *Result) Judge(c Circumstances) {
	v := Verdict{Latencies: true, Account: true, Reasons: []string{}, Notes: []string{}, Beliefs: []Belief{}, Of: r.Leading, platform: r.Platform}
	r.Dropped, r.Unserved, r.CPU = c.Dropped, c.Unserved, c.CPU
	r.judgeDropped(&v)
	r.judgeSegment(&v)
	if c.Unserved > 0 {
		v.because(latencies, "%d arrivals were due but never got an iteration: raise maxVUs or gracefulStop, or lower the rate", c.Unserved)
	}
	if c.Stranded > 0 {
		v.because(latencies|account, "%d VUs could await nothing any more after k6 had interrupted their script in the middle, when a scenario's time was over, and did "+
			"nothing in later ones: give scenarios whose VUs others use again a gracefulStop within which their iterations end", c.Stranded)
	}
	if c.Ended != "" {
		v.because(latencies|account, "%s", c.Ended)
	}
	led := r.Led()
	if busiest := led.busiest(); busiest > saturated {
		v.because(latencies, "the load generator used %.0f %% of its CPUs in its busiest %.0f seconds, so it measured itself: lower the rate or give it more CPUs",
			100*busiest, SaturatedWindow)
	}
	switch {
	case !r.measured():
		v.because(latencies|account, "nothing was measured")
	case c.WarmUp > 0 && r.Phase(Measure) == nil && len(r.Phases) < 2:
		v.because(latencies, "the test ended within its warm-up of %v: there is no measured window, and the latencies are those of the warm-up", c.WarmUp)
	case !led.measured():
		v.because(latencies, "nothing was measured in the phase %q", r.Leading)
	}
	if r.Processes > 1 && r.Siblings >= r.Processes {
		v.because(latencies|account, "messages came from %d other processes with the same BROKER_RUN, and the test has %d in all: some are of an earlier test, "+
			"and are in the latencies; give each test its own BROKER_RUN", r.Siblings, r.Processes)
	}
	r.judgePeers(&v)
	for i := range r.Topics {
		r.Topics[i].Namesake = slices.ContainsFunc(r.Topics, func(t Topic) bool { return t.Topic == r.Topics[i].Topic && t.Broker != r.Topics[i].Broker })
	}
	for i := range r.Topics {
		if c.Ended == "" {
			r.Topics[i].judgeInterruptions(&v)
		}
		r.Topics[i].judge(&v, &led.Topics[i])
	}
	r.NoteRates(&v)
	for _, p := range r.Phases {
		r.During(p.Name).NoteRates(&v)
	}
	if r.Leading == "" && r.Phase(WarmUp) != nil && len(r.Phases) > 1 {
		v.note("no phase is called %s, so that the verdict is on the whole run, its warm-up included", Measure)
	}
	if r.LogsCut != nil {
		v.note("%v", r.LogsCut)
	}
	v.Valid = len(v.Reasons) == 0
	r.Verdict = v
}

// judgeDropped looks at the iterations that never ran. For k6 these are arrivals for which no VU was free as well as what maxDuration left of a
// given number of iterations, and it does not tell which: scenarios of one kind do.
func (r *Result) judgeDropped(v *Verdict) {
	if r.Dropped == 0 {
		return
	}
	switch arrivals, iterations := r.Test.runs("constant-arrival-rate", "ramping-arrival-rate"), r.Test.runs("per-vu-iterations", "shared-iterations"); {
	case iterations && arrivals:
		v.because(latencies, "k6 dropped %d iterations: arrivals because no VU was free, so that the slowest moments are missing from the latencies, or what the maxDuration of "+
			"scenarios with a given number of iterations left of these, which k6 does not tell apart; raise preAllocatedVUs and maxVUs, and maxDuration", r.Dropped)
	case iterations:
		v.note("%d iterations never ran, because the maxDuration of their scenario was over: what they would have done is in no number", r.Dropped)
	default:
		v.because(latencies, "k6 dropped %d arrivals because no VU was free: the slowest moments are missing from the latencies; "+
			"raise preAllocatedVUs and maxVUs, or use the executor open-arrival-rate", r.Dropped)
	}
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
		if t.Counts[metric.Sent.String()] > 0 || t.Counts[metric.Received.String()] > 0 || len(t.Errors) > 0 {
			return true
		}
	}
	return false
}

// Overtaxed says why the load generator itself was at its end, so that nobody knows what the system would have made of the load; "" where nothing
// says so. How late it was is in each latency, and speaks against that alone.
func (r *Result) Overtaxed() string {
	switch busiest := r.Led().busiest(); {
	case r.Dropped > 0 && r.Test.runs("constant-arrival-rate", "ramping-arrival-rate"):
		return fmt.Sprintf("k6 dropped %d arrivals because no VU was free", r.Dropped)
	case r.Unserved > 0:
		return fmt.Sprintf("%d arrivals were due but never got an iteration", r.Unserved)
	case busiest > saturated:
		return fmt.Sprintf("the load generator used %.0f %% of its CPUs in its busiest %.0f seconds", 100*busiest, SaturatedWindow)
	}
	return ""
}

// busiest is the greatest share of its CPUs that the process used over a window in which something was due.
func (r *Result) busiest() (most float64) {
	for i := range r.Topics {
		most = max(most, r.Topics[i].busiest())
	}
	return most
}

// judge looks at the topic, and at its latencies as they are led with.
func (t *Topic) judge(v *Verdict, led *Topic) {
	sent, confirmed, received := t.Counts[metric.Sent.String()], t.Counts[metric.Confirmed.String()], t.Counts[metric.Received.String()]
	if n := t.Counts[metric.Due.String()] - sent; n > 0 {
		v.because(latencies, "%s: %s due but never sent, because the test ended first", t.name(), messages(n))
	}
	switch {
	case len(t.Errors) > 0 && sent == 0 && received == 0:
		v.because(latencies|account, "%s: nothing was sent and nothing received: see its errors", t.name())
	case sent > 0 && confirmed == 0:
		v.because(latencies|account, "%s: none of %d messages was confirmed: see its errors", t.name(), sent)
	case led.whole != nil && led.Counts[metric.Sent.String()] > 0 && led.Counts[metric.Confirmed.String()] == 0:
		v.because(latencies, "%s: none of %d messages of the %s phase was confirmed in it", t.name(), led.Counts[metric.Sent.String()], led.phase.Name)
	default:
		led.judgeFailures(v)
	}
	switch unused := t.Declared && received == 0 && (sent > 0 || len(t.Groups) > 0); {
	case unused && t.Shared: // those of another process may be the ones that receive
		v.note("%s: it has a consumer that received nothing in this process, though those of another may have: %s", t.name(), mergeTells)
	case unused:
		v.because(account, "%s: it has a consumer that received nothing, so neither end-to-end latency nor loss was measured", t.name())
	}
	t.judgeStrangers(v)
	t.judgeRequests(v)
	t.judgeAbsence(v)
	for i := range t.Groups {
		t.judgeGroup(v, &t.Groups[i])
	}
	t.judgeConsumers(v)
	led.judgeLateness(v)
	led.judgeClocks(v)
	if led.whole != nil {
		led.judgeStationarity(v)
	}
	if t.Info.Embedded {
		v.note("%s: the embedded broker shares this process, so its latencies say nothing about a real one", t.name())
	}
	switch {
	case t.ClosedLoop && t.OpenLoop:
		v.note("%s: part of it was sent in a closed loop, which has its own rows; in k6's metrics, tell the two apart by the tag loop", t.name())
	case t.ClosedLoop:
		v.note("%s: closed loop: messages were sent when there was room for them, so publish latency is service time and hides waiting", t.name())
	}
}

// judgeFailures looks at sends that failed, in each loop by itself, as each has latencies of its own. Few of all that are many of one
// loop's speak against no latencies but those, whose percentiles say that they lack them.
func (t *Topic) judgeFailures(v *Verdict) {
	about := latencies
	errors := t.ErrorsOf("send") + t.ErrorsOf("request")
	all := max(t.Counts[metric.Sent.String()], errors) // what failed in a phase may have been sent before it
	if share(errors, all) <= trifle {
		about = 0
	}
	for _, suffix := range t.loops() {
		failed, sent, which := int64(t.failed(suffix)), all, ""
		if len(t.loops()) > 1 {
			sent = int64(t.measured(metric.PublishLatency.String()+suffix)+t.measured(metric.RequestLatency.String()+suffix)) + failed
			which = " of its " + map[string]metric.Loop{"": metric.Open, metric.ClosedSuffix: metric.Closed}[suffix].String() + " loop"
		}
		what, of := t.asked()
		switch s := share(failed, sent); {
		case s > trifle:
			v.because(about, "%s: %d of %d %s%s failed (%s): %s of the others only", t.name(), failed, sent, what, which, percent(s), of)
		case failed > 0:
			v.note("%s: %d of %d %s%s failed", t.name(), failed, sent, what, which)
		}
	}
}

// asked names what was sent to the topic, and the latencies that have none of what failed: a request without a reply may have been received.
func (t *Topic) asked() (what, latencies string) {
	has := func(trend metric.Trend, op string) bool {
		return t.measured(trend.String())+t.measured(trend.String()+metric.ClosedSuffix) > 0 || t.ErrorsOf(op) > 0
	}
	switch requests := has(metric.RequestLatency, "request"); {
	case requests && has(metric.PublishLatency, "send"):
		return "sends and requests", "their latencies are those"
	case requests:
		return "requests", "request latency is that"
	}
	return "sends", "the latencies are those"
}

// loops are what the names of the topic's trends end with: the plain ones and, where it has both loops, those of the closed one.
func (t *Topic) loops() []string {
	for name := range t.Trends {
		if t.OpenLoop && strings.HasSuffix(name, metric.ClosedSuffix) {
			return []string{"", metric.ClosedSuffix}
		}
	}
	return []string{""}
}

// judgeStrangers looks at messages that came in and are not accounted for here.
func (t *Topic) judgeStrangers(v *Verdict) {
	if n := t.Counts[metric.Negative.String()]; n > 0 {
		which := ""
		if t.Apart != nil {
			which = ": " + t.Apart.String()
		}
		v.because(latencies, "%s: %d messages arrived before they were sent, according to the clocks of two machines%s", t.name(), n, which)
	}
	if n := t.Counts[metric.Sibling.String()]; n > 0 && t.Shared {
		v.note("%s: %s sent by other processes with the same BROKER_RUN, and are in the latencies. They are of this test, or of an earlier one: %s",
			t.name(), messages(n), mergeTells)
	}
	switch n := t.Counts[metric.Earlier.String()]; {
	case n > 0 && t.Alone:
		v.because(latencies|account, "%s: %s sent by an earlier test with the same BROKER_RUN, and are in no latency: give each test its own BROKER_RUN",
			t.name(), messages(n))
	case n > 0:
		which := ""
		if t.Shared {
			which = "; which of the two is not known here: " + mergeTells
		}
		v.because(latencies|account, "%s: %s sent more than %v before the process that received them began, by an earlier test with the same BROKER_RUN or by a "+
			"process that began long before, and are in no latency: give each test its own BROKER_RUN, and start its processes together%s",
			t.name(), messages(n), ClockSkew, which)
	}
	if s := share(t.Before, t.Counts[metric.Received.String()]); s > trifle {
		v.because(latencies, "%s: %d messages (%s) were sent more than %v before the process that received them began: their latencies, the longest ones, "+
			"are missing from the distribution; start the processes of a test together", t.name(), t.Before, percent(s), ClockSkew)
	} else if t.Before > 0 {
		v.note("%s: %s sent more than %v before the process that received them began, and are in no latency", t.name(), messages(t.Before), ClockSkew)
	}
	if n := t.Counts[metric.Aliased.String()]; n > 0 {
		v.because(account, "%s: %s received at %s but sent to another address: if that is the same broker, name it by one URL, "+
			"because what was lost of them is not known", t.name(), messages(n), t.Broker)
	}
	if n := t.Counts[metric.Unaccounted.String()]; n > 0 && !t.OnlySends {
		v.note("%s: %s sent without a stamp, and are in neither end-to-end latency nor the accounting", t.name(), messages(n))
	}
	if n := t.Counts[metric.Foreign.String()]; n > 0 {
		v.note("%s: %s received that belong to other tests: they are in no latency, but took the consumers' time", t.name(), messages(n))
	}
	if n := t.Counts[metric.Routed.String()]; n > 0 {
		unknown := ""
		if !t.Alone {
			unknown = "; how many did not come is not known in a test of several processes"
		}
		v.note("%s: %s received by way of another topic of this test: dead letters, wildcards or forwarded messages, which are in no account of what was lost, and of "+
			"what was sent before the first of them nobody knows whether it should have come%s",
			t.name(), messages(n), unknown)
	}
}

// judgeRequests speaks of requests and replies that did not meet.
func (t *Topic) judgeRequests(v *Verdict) {
	if n := t.Counts[metric.Unanswered.String()]; n > 0 {
		v.note("%s: requests without a reply in time: %d, whose waiting is in the failed latency; replies that came later: %d", t.name(), n, t.Counts[metric.LateReplies.String()])
	}
	if n := t.Counts[metric.StrayReplies.String()]; n > 0 {
		v.note("%s: replies to no request of this test: %d. Does somebody else read or write where its replies come?", t.name(), n)
	}
}

// judgeAbsence speaks of what was sent when no consumer of the test was there.
func (t *Topic) judgeAbsence(v *Verdict) {
	if t.Shared { // the others know
		return
	}
	confirmed := t.Counts[metric.Confirmed.String()]
	if t.After > 0 {
		v.because(latencies|account, "%s: %s sent after the consumers had ended, and nobody was there to receive them: they are in no account; "+
			"a consumer that works for long on what it sends on must not ask for more meanwhile", t.name(), messages(t.After))
		return
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		all := (confirmed - t.Counts[metric.Unaccounted.String()]) * int64(max(1, g.Subscribers))
		if g.Late > 0 {
			v.because(latencies|account, "%s: %d messages (%s) were sent after the last consumer had left, by a process that ended later than the others waited for it: "+
				"they are in no account, and missing from the latencies", t.NameOf(g), g.Late, percent(share(int64(g.Late), all)))
		}
		if n := all - int64(g.Expected+g.Unexpected+g.Late); n > 0 {
			v.note("%s: %s confirmed when no consumer of it was there: they are in no account", t.NameOf(g), messages(n))
		}
	}
}

func (t *Topic) judgeGroup(v *Verdict, g *Group) {
	name := t.NameOf(g)
	if g.Group == ReadBack {
		if g.Uncertain > 0 {
			v.because(account, "%s: %s confirmed, and the broker could not be asked at the end of the test whether it has them", t.name(), messages(int64(g.Uncertain)))
		}
		return
	}
	for _, by := range g.Passed {
		if by.Missing > 0 {
			v.note("%s: of %d messages %s since the first of them came in here, %d (%s) never did: %s", name, by.Expected, by.whose(), by.Missing,
				percent(share(int64(by.Missing), int64(by.Expected))), by.fate())
		}
		if s := share(int64(by.Drained), int64(by.Expected)); s > trifle {
			v.because(latencies, "%s: %d messages of %s (%s) reached no consumer of the test and were read when theirs left: their latencies are missing from the "+
				"distribution; let the consumers run for longer, or give them more capacity", name, by.Drained, by.From, percent(s))
		}
	}
	if s := share(int64(g.Drained), int64(g.Expected)); s > trifle {
		v.because(latencies, "%s: %d messages (%s) reached no consumer of the test and were read at its end to complete the accounting: their latencies, "+
			"the longest ones, are missing from the distribution; let the consumers run for longer (the executor consumers waits for drainTimeout, an option of "+
			"connect), or give them more capacity", name, g.Drained, percent(s))
	} else if g.Drained > 0 {
		v.note("%s: %s read at the end of the test, by none of its consumers, to complete the accounting", name, messages(int64(g.Drained)))
	}
	if s := share(int64(g.Removed), int64(g.Expected)); s > trifle {
		v.because(latencies, "%s: %d messages (%s) were removed from the broker by the test itself before any consumer had them: their latencies, the longest "+
			"ones, are missing from the distribution; let the consumers read to the end before the topic is deleted or emptied", name, g.Removed, percent(s))
	} else if g.Removed > 0 {
		v.note("%s: %s removed from the broker by the test itself before any consumer had them", name, messages(int64(g.Removed)))
	}
	if s := share(int64(g.Undelivered), int64(g.Expected)); s > trifle {
		v.because(latencies, "%s: %d messages (%s) were still at the broker when the test ended: their latencies, the longest ones, are missing from the distribution%s",
			name, g.Undelivered, percent(s), t.unless())
	}
	const unmeasured = "%s: %d messages (%s) were received, or may have been, by a process after it had written its latencies for the last time: they are in none"
	if s := share(int64(g.Unmeasured), int64(g.Expected)); s > trifle {
		v.because(latencies, unmeasured, name, g.Unmeasured, percent(s))
	} else if g.Unmeasured > 0 {
		v.note(unmeasured, name, g.Unmeasured, percent(s))
	}
	switch {
	case g.Lost == 0:
	case len(t.Drops) > 0:
		v.note("%s: the broker may have dropped the messages lost, because the test set %s", name, strings.Join(t.Drops, ", "))
	case t.HeldUnseen:
		v.note("%s: of the messages lost, a client outside of the test that is no consumer may hold some unsettled, as basic.get does: the broker does not tell", name)
	}
	switch {
	case g.Uncertain > 0 && t.Routed:
		v.because(account, "%s: %s never received: where messages go by their keys, it cannot be told whether they were meant for others, or are lost%s",
			name, messages(int64(g.Uncertain)), t.unless())
	case g.Doubted > 0 && g.Doubted == g.Uncertain:
		v.because(account, "%s: %s sent just when a consumer came or left, and never received: it cannot be told whether that was there for them; let consumers "+
			"be ready before anything is sent, and leave when all has been", name, messages(int64(g.Doubted)))
	case g.Uncertain > 0:
		v.because(account, "%s: %s never received, and it cannot be told whether they are lost, still at the broker, or removed by the test itself%s",
			name, messages(int64(g.Uncertain)), t.unless())
	}
	switch {
	case g.Elsewhere > 0 && t.Shared:
		v.note("%s: %s received by another process of the test, or lost: %s", name, messages(int64(g.Elsewhere)), mergeTells)
	case g.Elsewhere > 0 && t.Alone:
		v.because(account, "%s: %s received at another topic by a group of the same name, which the server takes for the same one: name each otherwise", name, messages(int64(g.Elsewhere)))
	case g.Elsewhere > 0:
		v.because(account, "%s: %s not received here: they are lost, or somebody has them whose account is not here", name, messages(int64(g.Elsewhere)))
	}
}

// unless ends what may be otherwise where other processes of the test have a say.
func (t *Topic) unless() string {
	if !t.Shared {
		return ""
	}
	return ", unless another process received them: " + mergeTells
}
