//gosec:disable G115 -- counts, far below their limits
package result

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Verdict reports whether the numbers of a run are reliable, and why not.
type Verdict struct {
	Valid     bool            `json:"valid"`
	Of        string          `json:"of,omitempty"`     // the phase whose latencies it judges; "" for the whole run
	UpTo      float64         `json:"upTo,omitempty"`   // the quantile up to which every latency is reliable; 0 if all that is supported is
	Except    string          `json:"except,omitempty"` // a latency that is not reliable because of two clocks
	Latencies bool            `json:"latencies"`        // no invalid reason speaks against its latencies
	Account   bool            `json:"account"`          // no invalid reason speaks against its account
	Reasons   []reason.Reason `json:"reasons"`
	Beliefs   []Belief        `json:"beliefs"` // how far each latency is reliable

	platform *Platform
}

// Invalid returns the reasons why the result is not valid.
func (v *Verdict) Invalid() []reason.Reason { return v.at(reason.Invalid) }

// Notes returns the reasons that do not make the result invalid.
func (v *Verdict) Notes() []reason.Reason { return v.at(reason.Note) }

func (v *Verdict) at(level reason.Level) (all []reason.Reason) {
	for _, r := range v.Reasons {
		if r.Level == level {
			all = append(all, r)
		}
	}
	return all
}

// Overtaxed returns the reason why the load generator was at its limit; false if it was not.
func (v *Verdict) Overtaxed() (why reason.Reason, ok bool) {
	for _, r := range v.Invalid() {
		if r.Code == reason.ArrivalsDropped || r.Code == reason.GeneratorSaturated {
			return r, true
		}
	}
	return reason.Reason{}, false
}

// Add adds a reason.
func (v *Verdict) Add(r reason.Reason) {
	v.Reasons = append(v.Reasons, r)
	if r.Level != reason.Invalid {
		return
	}
	latencies, account := r.Code.Against()
	v.Valid, v.Latencies, v.Account = false, v.Latencies && !latencies, v.Account && !account
}

func (v *Verdict) invalid(at subject, code reason.Code, values reason.Values) {
	v.Add(at.reason(code, reason.Invalid, values))
}

func (v *Verdict) note(at subject, code reason.Code, values reason.Values) {
	v.Add(at.reason(code, reason.Note, values))
}

// byShare adds a reason about messages: invalid if their share is greater than [minorLoss].
func (v *Verdict) byShare(at subject, code reason.Code, n, total int64, values reason.Values) {
	if n <= 0 {
		return
	}
	level := reason.Note
	if share(n, total) > minorLoss {
		level = reason.Invalid
	}
	counted := reason.Values{"count": n, "share": share(n, total)}
	maps.Copy(counted, values)
	v.Add(at.reason(code, level, counted))
}

// subject is the subject of a reason; the zero subject is the whole run.
type subject struct{ topic, group, phase string }

func (s subject) reason(code reason.Code, level reason.Level, values reason.Values) reason.Reason {
	r := reason.New(code, level, values)
	r.Topic, r.Group, r.Phase = s.topic, s.group, s.phase
	return r
}

func (t *Topic) subject() subject { return subject{topic: t.name()} }

func (t *Topic) subjectOf(g *Group) subject { return subject{topic: t.name(), group: g.Group} }

// Circumstances are facts about a run that only k6 has.
type Circumstances struct {
	Dropped  uint64        // dropped iterations
	Unserved uint64        // arrivals of an open executor that never had an iteration
	Stranded uint64        // VUs whose scripts did not resume after an interruption
	CPU      float64       // the share of its CPUs that the process used, 0 to 1
	Ended    string        // why the test ended early, as a variant of [reason.EndedEarly]; "" if it did not
	After    time.Duration // how long after its start it ended
	WarmUp   time.Duration // how long nothing was to be in the measured window
}

const (
	// saturated is the share of its CPUs, in its worst window, above which a generator measures itself.
	saturated = 0.9
	// SaturatedWindow is the length of that window in seconds.
	SaturatedWindow = 5.0
	// minorLoss is the share of messages that may fail, or reach no consumer, in a valid run.
	minorLoss = 0.001
)

// Judge sets the verdict. The latencies are those of the leading phase, the account is the whole run's.
func (r *Result) Judge(c Circumstances) {
	v := Verdict{Valid: true, Latencies: true, Account: true, Reasons: []reason.Reason{}, Beliefs: []Belief{}, Of: r.Leading, platform: r.Platform}
	r.Dropped, r.Unserved, r.CPU = c.Dropped, c.Unserved, c.CPU
	led := r.Led()
	r.judgeArrivals(&v)
	r.judgeProcess(&v)
	if c.Stranded > 0 {
		v.invalid(subject{}, reason.EndedEarly, reason.Values{"why": "stranded", "count": c.Stranded})
	}
	if c.Ended != "" {
		v.invalid(subject{}, reason.EndedEarly, reason.Values{"why": c.Ended, "after": c.After})
	}
	if cpu := r.busiest(); cpu > saturated {
		v.invalid(subject{}, reason.GeneratorSaturated, reason.Values{"cpu": cpu, "window": SaturatedWindow})
	}
	switch {
	case !r.measured():
		v.invalid(subject{}, reason.NothingMeasured, reason.Values{"why": "nothing"})
	case c.WarmUp > 0 && r.Phase(Measure) == nil && len(r.Phases) < 2:
		v.invalid(subject{}, reason.NoMeasuredWindow, reason.Values{"why": "warm-up", "warmUp": c.WarmUp})
	case !led.measured():
		v.invalid(subject{phase: r.Leading}, reason.NoMeasuredWindow, reason.Values{"why": "empty"})
	case r.Leading == "" && r.Phase(WarmUp) != nil && len(r.Phases) > 1:
		v.note(subject{}, reason.NoMeasuredWindow, reason.Values{"why": "unnamed"})
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		t.Namesake = slices.ContainsFunc(r.Topics, func(o Topic) bool { return o.Topic == t.Topic && o.Broker != t.Broker })
		led.Topics[i].Namesake = t.Namesake
	}
	for i := range r.Topics {
		if c.Ended == "" {
			r.Topics[i].judgeInterruptions(&v)
		}
		r.Topics[i].judge(&v, &led.Topics[i])
	}
	r.Verdict = v
}

// judgeArrivals adds the arrivals that had no iteration. k6 also counts as dropped what maxDuration left of a number of
// iterations.
func (r *Result) judgeArrivals(v *Verdict) {
	if r.Unserved > 0 {
		v.invalid(subject{}, reason.ArrivalsDropped, reason.Values{"why": "unserved", "count": r.Unserved})
	}
	dropped := reason.Values{"why": "no-vu", "count": r.Dropped}
	switch {
	case r.Dropped == 0:
	case r.Test.runs("constant-arrival-rate", "ramping-arrival-rate") || !r.Test.runs("per-vu-iterations", "shared-iterations"):
		v.invalid(subject{}, reason.ArrivalsDropped, dropped)
	default:
		dropped["why"] = "max-duration"
		v.note(subject{}, reason.ArrivalsDropped, dropped)
	}
}

// judgeProcess adds what is wrong with one of several processes.
func (r *Result) judgeProcess(v *Verdict) {
	if s := r.Segment; s != nil {
		if s.Nameless {
			v.invalid(subject{}, reason.ProcessesDiffer, reason.Values{"why": "no-run", "detail": s.Of})
		}
		for _, scenario := range s.Idle {
			v.invalid(subject{}, reason.LoadIncomplete, reason.Values{"why": "idle", "scenario": scenario, "segment": s.Of})
		}
	}
	if r.Processes > 1 && r.Siblings >= r.Processes {
		v.invalid(subject{}, reason.EarlierTest, reason.Values{"why": "processes", "count": r.Siblings, "processes": r.Processes})
	}
	for _, name := range r.Missing {
		v.invalid(subject{}, reason.ProcessMissing, reason.Values{"why": "late", "name": name})
	}
	if r.Siblings > 0 && r.Clock == nil {
		v.note(subject{}, reason.Clocks, reason.Values{"why": "not-compared", "count": r.Siblings + 1})
	}
}

// measured reports whether anything was sent or received.
func (r *Result) measured() bool {
	return slices.ContainsFunc(r.Topics, func(t Topic) bool {
		return t.Counts[recording.Sent.String()] > 0 || t.Counts[recording.Received.String()] > 0 || len(t.Errors) > 0
	})
}

// busiest returns the greatest share of its CPUs that the process used in a window that overlaps the leading phase.
func (r *Result) busiest() (most float64) {
	p := r.Phase(r.Leading)
	for _, t := range r.Topics {
		for _, i := range t.History {
			if p == nil || slices.ContainsFunc(p.Stretches, func(s Stretch) bool { return i.At > s.From && i.At-i.Seconds < s.To }) {
				most = max(most, i.Busiest)
			}
		}
	}
	return most
}

// judge judges the topic, and its latencies in the leading phase.
func (t *Topic) judge(v *Verdict, led *Topic) {
	due, sent, received := t.Counts[recording.Due.String()], t.Counts[recording.Sent.String()], t.Counts[recording.Received.String()]
	if n := due - sent; n > 0 {
		v.invalid(t.subject(), reason.LoadIncomplete, reason.Values{"why": "due", "count": n, "missing": share(n, due)})
	}
	switch {
	case len(t.Errors) > 0 && sent == 0 && received == 0:
		v.invalid(t.subject(), reason.NothingMeasured, reason.Values{"why": "nothing"})
	case sent > 0 && t.Counts[recording.Confirmed.String()] == 0:
		v.invalid(t.subject(), reason.NothingMeasured, reason.Values{"why": "unconfirmed", "count": sent})
	case led.phase != nil && led.Counts[recording.Sent.String()] > 0 && led.Counts[recording.Confirmed.String()] == 0:
		v.invalid(subject{topic: t.name(), phase: led.phase.Name}, reason.NoMeasuredWindow, reason.Values{"why": "empty"})
	default:
		led.judgeFailures(v)
	}
	if t.Declared && received == 0 && (sent > 0 || len(t.Groups) > 0) && !t.Shared { // another process may be the receiver
		v.invalid(t.subject(), reason.NothingReceived, nil)
	}
	t.judgeStrangers(v)
	t.judgeAbsence(v)
	for i := range t.Groups {
		t.judgeGroup(v, &t.Groups[i])
	}
	t.judgeConsumers(v)
	led.judgeLateness(v)
	led.judgeClocks(v)
	if led.phase != nil {
		led.judgeStationarity(v)
	}
	if t.Info.Embedded {
		v.note(t.subject(), reason.EmbeddedBroker, nil)
	}
	switch {
	case t.ClosedLoop && t.OpenLoop:
		v.note(t.subject(), reason.ClosedLoop, reason.Values{"why": "part"})
	case t.ClosedLoop:
		v.note(t.subject(), reason.ClosedLoop, reason.Values{"why": "all"})
	}
}

// judgeFailures adds the sends and requests that failed.
func (t *Topic) judgeFailures(v *Verdict) {
	for _, op := range []string{"send", "request"} {
		failed, answered := t.ErrorsOf(op), int64(0)
		for name := range t.Trends {
			if trend := strings.TrimSuffix(name, recording.ClosedSuffix); SentBy(trend) == op && strings.HasSuffix(trend, "_latency") {
				answered += int64(t.measured(name))
			}
		}
		v.byShare(t.subject(), reason.SendsFailed, failed, answered+failed, reason.Values{"total": answered + failed, "sends": op + "s"})
	}
}

// judgeStrangers adds received messages that are in no account of the topic.
func (t *Topic) judgeStrangers(v *Verdict) {
	at, count := t.subject(), func(c recording.Counter) int64 { return t.Counts[c.String()] }
	if n := count(recording.Negative); n > 0 {
		values := reason.Values{"why": "negative", "count": n}
		if t.Apart != nil {
			values["clocks"], values["apart"] = t.Apart.String(), time.Duration(t.Apart.apart())
		}
		v.invalid(at, reason.Clocks, values)
	}
	switch n := count(recording.Earlier); {
	case n > 0 && t.Alone:
		v.invalid(at, reason.EarlierTest, reason.Values{"why": "run", "count": n})
	case n > 0:
		v.invalid(at, reason.EarlierTest, reason.Values{"why": "early", "count": n, "skew": ClockSkew})
	}
	if n := count(recording.Aliased); n > 0 {
		v.invalid(at, reason.Uncertain, reason.Values{"why": "aliased", "count": n, "broker": t.Broker})
	}
	if n := count(recording.Unaccounted); n > 0 && !t.OnlySends {
		v.note(at, reason.NotStamped, reason.Values{"count": n})
	}
	if n := count(recording.Foreign); n > 0 {
		v.note(at, reason.Foreign, reason.Values{"why": "messages", "count": n})
	}
	if n := count(recording.StrayReplies); n > 0 {
		v.note(at, reason.Foreign, reason.Values{"why": "replies", "count": n})
	}
	if n := count(recording.Routed); n > 0 {
		v.note(at, reason.Routed, reason.Values{"why": "here", "count": n})
	}
}

// judgeAbsence adds messages that were sent while no consumer of the test was there. Of one of several processes that is
// not known.
func (t *Topic) judgeAbsence(v *Verdict) {
	if t.Shared {
		return
	}
	if t.After > 0 {
		v.invalid(t.subject(), reason.NoConsumer, reason.Values{"why": "after", "count": t.After})
		return
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		all := (t.Counts[recording.Confirmed.String()] - t.Counts[recording.Unaccounted.String()]) * int64(max(1, g.Subscribers))
		if n := all - int64(g.Expected+g.Unexpected); n > 0 {
			v.note(t.subjectOf(g), reason.NoConsumer, reason.Values{"why": "away", "count": n})
		}
	}
}

func (t *Topic) judgeGroup(v *Verdict, g *Group) {
	at, expected := t.subjectOf(g), int64(g.Expected)
	v.byShare(at, reason.Drained, int64(g.Drained), expected, nil)
	if s := share(int64(g.Undelivered), expected); s > minorLoss && g.Group != account.ReadBack {
		v.invalid(at, reason.Undelivered, reason.Values{"count": g.Undelivered, "share": s})
	}
	if g.Lost > 0 && g.Group != account.ReadBack {
		values := reason.Values{"count": g.Lost, "total": g.Expected, "share": share(int64(g.Lost), expected)}
		switch {
		case len(t.Drops) > 0:
			values["why"], values["options"] = "options", strings.Join(t.Drops, ", ")
		case t.HeldUnseen:
			values["why"] = "held"
		}
		v.note(at, reason.Lost, values)
	}
	for _, why := range slices.Sorted(maps.Keys(g.Why)) {
		level := reason.Invalid
		if why == account.MissingProcess && t.Shared { // the merge decides
			level = reason.Note
		}
		v.Add(at.reason(reason.Uncertain, level, reason.Values{"why": string(why), "count": g.Why[why]}))
	}
}

// Goal is what a produce loop is to do.
type Goal struct {
	Loop recording.Loop
	Unit string // what it is counted in: "messages" or "s"
}

// Interruption is of all loops with one goal that ended before they reached it.
type Interruption struct {
	Loops       int
	Done, Total float64 // by all of them, in the goal's unit
}

// judgeInterruptions adds the loops that did not reach their goal. The rate of a closed loop is correct all the same; an
// open one did not put the system under its load.
func (t *Topic) judgeInterruptions(v *Verdict) {
	for _, g := range []Goal{{recording.Open, "messages"}, {recording.Closed, "messages"}, {recording.Closed, "s"}} {
		i := t.Interrupted[g]
		if i.Loops == 0 {
			continue
		}
		missing := 1 - i.Done/i.Total
		values := reason.Values{"why": "closed", "done": i.Done, "total": i.Total, "unit": g.Unit, "missing": missing}
		if g.Loop == recording.Open {
			values["why"] = "schedule"
		}
		if g.Loop == recording.Open && missing > minorLoss {
			v.invalid(t.subject(), reason.LoadIncomplete, values)
		} else {
			v.note(t.subject(), reason.LoadIncomplete, values)
		}
	}
}
