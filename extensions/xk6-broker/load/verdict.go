package load

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Verdict says whether the numbers of a run can be believed, and why not.
type Verdict struct {
	Valid     bool     `json:"valid"`
	UpTo      float64  `json:"upTo,omitempty"` // the greatest quantile up to which every latency can be believed; 0 where all that is supported can
	Latencies bool     `json:"latencies"`      // nothing speaks against its latencies, as far as each is believed
	Account   bool     `json:"account"`        // nothing speaks against what it says of lost, duplicated and reordered messages
	Reasons   []string `json:"reasons"`        // why not valid
	Notes     []string `json:"notes"`          // what a reader must know all the same
	Beliefs   []Belief `json:"beliefs"`        // how far each latency can be believed

	advice string // what would make the generator less late
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
	v := Verdict{Latencies: true, Account: true, Reasons: []string{}, Notes: []string{}, Beliefs: []Belief{}, advice: r.Platform.advice()}
	r.Dropped, r.Unserved, r.CPU = c.Dropped, c.Unserved, c.CPU
	if c.Dropped > 0 {
		v.because(latencies, "k6 dropped %d arrivals because no VU was free: the slowest moments are missing from the latencies; "+
			"raise preAllocatedVUs and maxVUs, or use the executor open-arrival-rate", c.Dropped)
	}
	if c.Unserved > 0 {
		v.because(latencies, "%d arrivals were due but never got an iteration: raise maxVUs or gracefulStop, or lower the rate", c.Unserved)
	}
	if c.Ended != "" {
		v.because(latencies|account, "%s", c.Ended)
	}
	if busiest := r.busiest(); busiest > saturated {
		v.because(latencies, "the load generator used %.0f %% of its CPUs in its busiest %.0f seconds, so it measured itself: lower the rate or give it more CPUs",
			100*busiest, saturatedWindow)
	}
	if !r.measured() {
		v.because(latencies|account, "nothing was measured")
	}
	if r.Processes > 1 && r.siblings >= r.Processes {
		v.because(latencies|account, "messages came from %d other processes with the same BROKER_RUN, and the test has %d in all: some are of an earlier test, "+
			"and are in the latencies; give each test its own BROKER_RUN", r.siblings, r.Processes)
	}
	for i := range r.Topics {
		if c.Ended == "" {
			r.Topics[i].judgeInterruptions(&v)
		}
		r.Topics[i].judge(&v)
	}
	if r.logsCut != nil {
		v.note("%v", r.logsCut)
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
		for _, p := range t.History {
			most = max(most, p.Busiest)
		}
	}
	return most
}

func (t *TopicResult) judge(v *Verdict) {
	sent, confirmed, received := t.Counts[Sent.String()], t.Counts[Confirmed.String()], t.Counts[Received.String()]
	if n := t.Counts[Due.String()] - sent; n > 0 {
		v.because(latencies, "%s: %s due but never sent, because the test ended first", t.Topic, messages(n))
	}
	switch {
	case len(t.Errors) > 0 && sent == 0 && received == 0:
		v.because(latencies|account, "%s: nothing was sent and nothing received: see its errors", t.Topic)
	case sent > 0 && confirmed == 0:
		v.because(latencies|account, "%s: none of %d messages was confirmed: see its errors", t.Topic, sent)
	default:
		t.judgeFailures(v)
	}
	switch unused := t.Declared && received == 0 && (sent > 0 || len(t.Groups) > 0); {
	case unused && t.shared: // those of another process may be the ones that receive
		v.note("%s: it has a consumer that received nothing in this process: whether those of another did, %s", t.Topic, mergeTells)
	case unused:
		v.because(account, "%s: it has a consumer that received nothing, so neither end-to-end latency nor loss was measured", t.Topic)
	}
	t.judgeStrangers(v)
	t.judgeAbsence(v)
	for i := range t.Groups {
		t.judgeGroup(v, &t.Groups[i])
	}
	t.judgeConsumers(v)
	t.judgeLateness(v)
	if t.Info.Embedded {
		v.note("%s: the embedded broker shares this process, so its latencies say nothing about a real one", t.Topic)
	}
	switch {
	case t.ClosedLoop && t.OpenLoop:
		v.note("%s: part of it was sent in a closed loop, which has its own rows; in k6's metrics, tell the two apart by the tag loop", t.Topic)
	case t.ClosedLoop:
		v.note("%s: closed loop: messages were sent when there was room for them, so publish latency is service time and hides waiting", t.Topic)
	}
}

// judgeFailures looks at sends that failed, in each loop by itself, as each has latencies of its own. Few of all that are many of one
// loop's speak against no latencies but those, whose percentiles say that they lack them.
func (t *TopicResult) judgeFailures(v *Verdict) {
	about := latencies
	if share(t.errors("send")+t.errors("request"), t.Counts[Sent.String()]) <= trifle {
		about = 0
	}
	for _, suffix := range t.loops() {
		failed, sent, which := int64(t.failed(suffix)), t.Counts[Sent.String()], ""
		if len(t.loops()) > 1 {
			sent = int64(t.measured(PublishLatency.String()+suffix)+t.measured(RequestLatency.String()+suffix)) + failed
			which = " of its " + map[string]Loop{"": Open, ClosedSuffix: Closed}[suffix].String() + " loop"
		}
		switch s := share(failed, sent); {
		case s > trifle:
			v.because(about, "%s: %d of %d sends%s failed (%s): the latencies are those of the others only", t.Topic, failed, sent, which, percent(s))
		case failed > 0:
			v.note("%s: %d of %d sends%s failed", t.Topic, failed, sent, which)
		}
	}
}

// loops are what the names of the topic's trends end with: the plain ones and, where it has both loops, those of the closed one.
func (t *TopicResult) loops() []string {
	for name := range t.Trends {
		if t.OpenLoop && strings.HasSuffix(name, ClosedSuffix) {
			return []string{"", ClosedSuffix}
		}
	}
	return []string{""}
}

// judgeStrangers looks at messages that came in and are not accounted for here.
func (t *TopicResult) judgeStrangers(v *Verdict) {
	if n := t.Counts[Negative.String()]; n > 0 {
		v.because(latencies, "%s: %d messages arrived before they were sent, according to the clocks of two machines", t.Topic, n)
	}
	if n := t.Counts[Sibling.String()]; n > 0 && t.shared {
		v.note("%s: %s sent by other processes with the same BROKER_RUN, and are in the latencies: whether by those of this test, or by an earlier one, %s",
			t.Topic, messages(n), mergeTells)
	}
	switch n := t.Counts[Earlier.String()]; {
	case n > 0 && t.alone:
		v.because(latencies|account, "%s: %s sent by an earlier test with the same BROKER_RUN, and are in no latency: give each test its own BROKER_RUN",
			t.Topic, messages(n))
	case n > 0:
		which := ""
		if t.shared {
			which = "; which it was, " + mergeTells
		}
		v.because(latencies|account, "%s: %s sent more than %v before the process that received them began, by an earlier test with the same BROKER_RUN or by a "+
			"process that began long before, and are in no latency: give each test its own BROKER_RUN, and start its processes together%s",
			t.Topic, messages(n), clockSkew, which)
	}
	if s := share(t.before, t.Counts[Received.String()]); s > trifle {
		v.because(latencies, "%s: %d messages (%s) were sent more than %v before the process that received them began: their latencies, the longest ones, "+
			"are missing from the distribution; start the processes of a test together", t.Topic, t.before, percent(s), clockSkew)
	} else if t.before > 0 {
		v.note("%s: %s sent more than %v before the process that received them began, and are in no latency", t.Topic, messages(t.before), clockSkew)
	}
	if n := t.Counts[Aliased.String()]; n > 0 {
		v.because(account, "%s: %s received at %s but sent to another address: if that is the same broker, name it by one URL, "+
			"because what was lost of them is not known", t.Topic, messages(n), t.Broker)
	}
	if n := t.Counts[Unaccounted.String()]; n > 0 {
		v.note("%s: %s sent without a stamp, and are in neither end-to-end latency nor the accounting", t.Topic, messages(n))
	}
	if n := t.Counts[Foreign.String()]; n > 0 {
		v.note("%s: %s received that belong to other tests: they are in no latency, but took the consumers' time", t.Topic, messages(n))
	}
	if n := t.Counts[Routed.String()]; n > 0 {
		unknown := ""
		if !t.alone {
			unknown = "; how many did not come is not known in a test of several processes"
		}
		v.note("%s: %s received by way of another topic of this test: dead letters, wildcards or forwarded messages, which are in no account of what was lost%s",
			t.Topic, messages(n), unknown)
	}
}

// judgeAbsence speaks of what was sent when no consumer of the test was there.
func (t *TopicResult) judgeAbsence(v *Verdict) {
	if t.shared { // the others know
		return
	}
	confirmed := t.Counts[Confirmed.String()]
	if t.after > 0 {
		v.because(latencies|account, "%s: %s sent after the consumers had ended, and nobody was there to receive them: they are in no account; "+
			"who works for long before it sends on what it got must not wait for more meanwhile", t.Topic, messages(t.after))
		return
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		all := (confirmed - t.Counts[Unaccounted.String()]) * int64(max(1, g.Subscribers))
		if n := all - int64(g.Expected+g.Unexpected); n > 0 {
			v.note("%s: %s confirmed when no consumer of it was there: they are in no account", t.nameOf(g), messages(n))
		}
	}
}

func (t *TopicResult) judgeGroup(v *Verdict, g *GroupResult) {
	name := t.nameOf(g)
	for _, by := range g.passed {
		if by.missing > 0 {
			v.note("%s: of %d messages sent to %s since the first of them came in here, %d (%s) never did: %s", name, by.expected, by.from.Name, by.missing,
				percent(share(int64(by.missing), int64(by.expected))), by.fate())
		}
		if s := share(int64(by.drained), int64(by.expected)); s > trifle {
			v.because(latencies, "%s: %d messages of %s (%s) reached no consumer of the test and were read when theirs left: their latencies are missing from the "+
				"distribution; let the consumers run for longer, or give them more capacity", name, by.drained, by.from.Name, percent(s))
		}
	}
	if s := share(int64(g.Drained), int64(g.Expected)); s > trifle {
		v.because(latencies, "%s: %d messages (%s) reached no consumer of the test and were read at its end to complete the accounting: their latencies, "+
			"the longest ones, are missing from the distribution; let the consumers run for longer, or give them more capacity", name, g.Drained, percent(s))
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
	switch {
	case g.Uncertain > 0 && t.routed:
		v.because(account, "%s: %s never received: where messages go by their keys, it cannot be told whether they were meant for others, or are lost%s",
			name, messages(int64(g.Uncertain)), t.unless())
	case g.Uncertain > 0:
		v.because(account, "%s: %s never received, and it cannot be told whether the broker still has them or they are lost%s",
			name, messages(int64(g.Uncertain)), t.unless())
	}
	switch {
	case g.Elsewhere > 0 && t.shared:
		v.note("%s: %s received by another process of the test, or lost: %s", name, messages(int64(g.Elsewhere)), mergeTells)
	case g.Elsewhere > 0:
		v.because(account, "%s: %s not received here: they are lost, or somebody has them whose account is not here", name, messages(int64(g.Elsewhere)))
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
var judged = []struct {
	trend Trend
	label string
}{{PublishLatency, "publish latency"}, {RequestLatency, "request latency"}, {E2ELatency, "end-to-end latency"}}

// Belief is how far a latency can be believed.
type Belief struct {
	Topic string  `json:"topic"`
	Label string  `json:"label"` // the latency, as a reader calls it
	UpTo  float64 `json:"upTo"`  // the greatest quantile that can be believed, of those that a result spells out; 0: not even the median
	Why   string  `json:"why"`   // what speaks against those beyond; "" where only samples are lacking
}

// String is the belief as a sentence.
func (b Belief) String() string {
	switch {
	case b.UpTo == 0:
		return fmt.Sprintf("%s: not even the median of the %s can be believed: %s", b.Topic, b.Label, b.Why)
	case b.Why == "":
		return fmt.Sprintf("%s: %s can be believed as far as its samples reach, up to %s", b.Topic, b.Label, QuantileName(b.UpTo))
	}
	return fmt.Sprintf("%s: %s can be believed up to %s: %s", b.Topic, b.Label, QuantileName(b.UpTo), b.Why)
}

// In a doubt, they divide what owes too much to lateness from what there is to say of the lateness.
const isLateness, areLateness = " is lateness of ", " are lateness of "

// Doubts are the sentences on those beliefs that end before the samples do. Latencies of one topic are in one where the same speaks against
// them from the same point on.
func Doubts(beliefs []Belief) (sentences []string) {
	for i := 0; i < len(beliefs); i++ {
		b := beliefs[i]
		if b.Why == "" {
			continue
		}
		for i+1 < len(beliefs) && b.join(beliefs[i+1]) {
			i++
		}
		sentences = append(sentences, b.String())
	}
	return sentences
}

// join makes one belief of two latencies, if that can be.
func (b *Belief) join(other Belief) bool {
	if other.Topic != b.Topic || other.UpTo != b.UpTo {
		return false
	}
	why := b.Why
	if other.Why != why {
		mine, late, ok := strings.Cut(strings.Replace(why, areLateness, isLateness, 1), isLateness)
		its, equally, too := strings.Cut(other.Why, isLateness)
		if !ok || !too || late != equally {
			return false
		}
		why = mine + " and " + its + areLateness + late
	}
	b.Label, b.Why = b.Label+" and "+other.Label, why
	return true
}

// owesLittle begins the note on lateness that is too small to count against a latency.
const owesLittle = "lateness of the load generator or its machine, less than "

// judgeLateness says how far each latency can be believed.
func (t *TopicResult) judgeLateness(v *Verdict) {
	var unbelieved []Belief
	var owed []string
	for _, j := range judged {
		for _, suffix := range t.loops() {
			name, label := j.trend.String()+suffix, j.label
			if suffix != "" {
				label += " of the closed loop"
			}
			all := t.Percentiles[name]
			if len(all) == 0 || !all[0].Supported {
				continue
			}
			b := Belief{Topic: t.Topic, Label: label}
			var ok bool
			if b.UpTo, ok = believedUpTo(all); !ok {
				b.Why = t.doubt(name, all[0], v.advice)
				unbelieved = append(unbelieved, b)
			} else {
				if i := slices.IndexFunc(all, func(p Percentile) bool { return p.Supported && !p.Believed && p.Q > b.UpTo && p.Q < 1 }); i >= 0 {
					b.Why = t.doubt(name, all[i], v.advice)
					if v.UpTo == 0 || b.UpTo < v.UpTo {
						v.UpTo = b.UpTo
					}
				}
				owed = append(owed, owing(label, all)...)
			}
			v.Beliefs = append(v.Beliefs, b)
		}
	}
	for _, doubt := range Doubts(unbelieved) {
		// It speaks against no latency as such: which way lateness is wrong is known, and each percentile says that it has it.
		v.because(0, "%s", doubt)
	}
	if len(owed) > 0 {
		v.note("%s: %s%v, is %s", t.Topic, owesLittle, owedFloor, strings.Join(owed, " and "))
	}
	if lag, own := t.Trends[ScheduleLag.String()], t.Trends[GeneratorLag.String()]; lag != nil && own != nil &&
		lag.Quantile(0.99) > 2*max(own.Quantile(0.99), int64(owedFloor)) {
		v.note("%s: some sends waited for a free VU, for room in the window or for their connection to open; their latency counts from when they were due", t.Topic)
	}
}

// doubt says why a percentile is not believed.
func (t *TopicResult) doubt(name string, p Percentile, advice string) string {
	late := t.late(name, p.Q)
	if p.Owed > OwedShare && late > owedFloor {
		return fmt.Sprintf("%s of its %s (%v) is lateness of the load generator or its machine (%v); %s",
			percent(p.Owed), QuantileName(p.Q), round(p.Value), round(int64(late)), advice)
	}
	text := fmt.Sprintf("%s of the messages, which count as the slowest, are not in it", percent(t.absent(name, nil)))
	if strings.HasPrefix(name, E2ELatency.String()) {
		text += t.unless()
	}
	return text
}

// owing names the percentiles of a latency that can be believed and owe a good part to the generator all the same; nothing where there is none.
func owing(label string, all []Percentile) []string {
	var parts []string
	for _, p := range all {
		if p.Believed && p.Owed > OwedShare && p.Q < 1 {
			parts = append(parts, fmt.Sprintf("%s of the %s", percent(p.Owed), QuantileName(p.Q)))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{strings.Join(parts, ", ") + " of " + label}
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

// messages counts messages in a sentence about what became of them.
func messages(n int64) string {
	if n == 1 {
		return "1 message was"
	}
	return fmt.Sprintf("%d messages were", n)
}

// QuantileName is how people write a quantile: p99.9.
func QuantileName(q float64) string {
	if q == 1 {
		return "maximum"
	}
	return "p" + strconv.FormatFloat(math.Round(q*1e8)/1e6, 'f', -1, 64)
}
