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

// Verdict reports whether the numbers of a run can be relied on, and why not.
type Verdict struct {
	Valid     bool            `json:"valid"`
	Of        string          `json:"of,omitempty"`     // the phase whose latencies it is on; "" for the whole run
	UpTo      float64         `json:"upTo,omitempty"`   // the greatest quantile up to which every latency is reliable; 0 where all that is supported is
	Except    string          `json:"except,omitempty"` // a latency that is not reliable at all, because too little is known of the two clocks that measured it; "" where there is none
	Latencies bool            `json:"latencies"`        // no invalid reason speaks against its latencies, as far as each is reliable
	Account   bool            `json:"account"`          // no invalid reason speaks against its account of lost, duplicated and reordered messages
	Reasons   []reason.Reason `json:"reasons"`          // why it is not valid, and what a reader must know
	Beliefs   []Belief        `json:"beliefs"`          // how far each latency is reliable

	platform *Platform // that what is late is late on
}

// Invalid returns the reasons why the result is not valid.
func (v *Verdict) Invalid() []reason.Reason { return v.at(reason.Invalid) }

// Notes returns what a reader must know although it does not make the result invalid.
func (v *Verdict) Notes() []reason.Reason { return v.at(reason.Note) }

func (v *Verdict) at(level reason.Level) (all []reason.Reason) {
	for _, r := range v.Reasons {
		if r.Level == level {
			all = append(all, r)
		}
	}
	return all
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

// byShare adds a reason about messages: invalid if their share is greater than [trifle].
func (v *Verdict) byShare(at subject, code reason.Code, n, of int64, values reason.Values) {
	if n <= 0 {
		return
	}
	level := reason.Note
	if share(n, of) > trifle {
		level = reason.Invalid
	}
	counted := reason.Values{"count": n, "share": share(n, of)}
	maps.Copy(counted, values)
	v.Add(at.reason(code, level, counted))
}

// subject is what a reason is about; the zero subject is the whole run.
type subject struct{ topic, group, phase string }

func (s subject) reason(code reason.Code, level reason.Level, values reason.Values) reason.Reason {
	r := reason.New(code, level, values)
	r.Topic, r.Group, r.Phase = s.topic, s.group, s.phase
	return r
}

func (t *Topic) subject() subject { return subject{topic: t.name()} }

func (t *Topic) subjectOf(g *Group) subject { return subject{topic: t.name(), group: g.Group} }

// Circumstances are what the engine cannot know of a run by itself.
type Circumstances struct {
	Dropped  uint64        // what k6 counts as dropped iterations
	Unserved uint64        // arrivals of an open executor that never had an iteration
	Stranded uint64        // VUs whose scripts were resumed no more after k6 had interrupted one
	CPU      float64       // the share of its CPUs that the process used, 0 to 1
	Ended    string        // why the test ended before its time, as a variant of [reason.EndedEarly]; "" where it did not
	After    time.Duration // how long after its start it ended so
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

// Judge sets the verdict of a result. Where a phase leads, it is on the latencies of that; what was lost, and all that nobody knows the time
// of, is the whole run's.
func (r *Result) Judge(c Circumstances) {
	v := Verdict{Valid: true, Latencies: true, Account: true, Reasons: []reason.Reason{}, Beliefs: []Belief{}, Of: r.Leading, platform: r.Platform}
	r.Dropped, r.Unserved, r.CPU = c.Dropped, c.Unserved, c.CPU
	r.judgeDropped(&v)
	r.judgeSegment(&v)
	if c.Stranded > 0 {
		v.invalid(subject{}, reason.EndedEarly, reason.Values{"why": "stranded", "count": c.Stranded})
	}
	if c.Ended != "" {
		v.invalid(subject{}, reason.EndedEarly, reason.Values{"why": c.Ended, "after": c.After})
	}
	led := r.Led()
	if busiest := led.busiest(); busiest > saturated {
		v.invalid(subject{}, reason.GeneratorSaturated, reason.Values{"cpu": busiest, "window": SaturatedWindow})
	}
	switch {
	case !r.measured():
		v.invalid(subject{}, reason.NothingMeasured, reason.Values{"why": "nothing"})
	case c.WarmUp > 0 && r.Phase(Measure) == nil && len(r.Phases) < 2:
		v.invalid(subject{}, reason.NoMeasuredWindow, reason.Values{"why": "warm-up", "warmUp": c.WarmUp})
	case !led.measured():
		v.invalid(subject{phase: r.Leading}, reason.NoMeasuredWindow, reason.Values{"why": "empty"})
	}
	if r.Processes > 1 && r.Siblings >= r.Processes {
		v.invalid(subject{}, reason.EarlierTest, reason.Values{"why": "processes", "count": r.Siblings, "processes": r.Processes})
	}
	r.judgeMissing(&v)
	for i := range r.Topics {
		r.Topics[i].Namesake = slices.ContainsFunc(r.Topics, func(t Topic) bool { return t.Topic == r.Topics[i].Topic && t.Broker != r.Topics[i].Broker })
	}
	for i := range r.Topics {
		if c.Ended == "" {
			r.Topics[i].judgeInterruptions(&v)
		}
		r.Topics[i].judge(&v, &led.Topics[i])
	}
	if r.Leading == "" && r.Phase(WarmUp) != nil && len(r.Phases) > 1 {
		v.note(subject{}, reason.NoMeasuredWindow, reason.Values{"why": "unnamed"})
	}
	r.Verdict = v
}

// judgeDropped looks at the iterations that never ran. For k6 these are arrivals for which no VU was free as well as what maxDuration left of a
// given number of iterations, and it does not tell which: scenarios of one kind do.
func (r *Result) judgeDropped(v *Verdict) {
	if r.Unserved > 0 {
		v.invalid(subject{}, reason.ArrivalsDropped, reason.Values{"why": "unserved", "count": r.Unserved})
	}
	if r.Dropped == 0 {
		return
	}
	dropped := func(why string) reason.Values { return reason.Values{"why": why, "count": r.Dropped} }
	switch arrivals, iterations := r.Test.runs("constant-arrival-rate", "ramping-arrival-rate"), r.Test.runs("per-vu-iterations", "shared-iterations"); {
	case iterations && arrivals:
		v.invalid(subject{}, reason.ArrivalsDropped, dropped("unknown"))
	case iterations:
		v.note(subject{}, reason.ArrivalsDropped, dropped("max-duration"))
	default:
		v.invalid(subject{}, reason.ArrivalsDropped, dropped("no-vu"))
	}
}

// measured tells whether anything was sent or received.
func (r *Result) measured() bool {
	for _, t := range r.Topics {
		if t.Counts[recording.Sent.String()] > 0 || t.Counts[recording.Received.String()] > 0 || len(t.Errors) > 0 {
			return true
		}
	}
	return false
}

// Overtaxed reports why the load generator itself was at its end, so that nothing is known of what the system would have made of the load. How late it was is in
// each latency, and speaks against that alone.
func (v *Verdict) Overtaxed() (why reason.Reason, ok bool) {
	for _, r := range v.Invalid() {
		if r.Code == reason.ArrivalsDropped || r.Code == reason.GeneratorSaturated {
			return r, true
		}
	}
	return reason.Reason{}, false
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
	sent, confirmed, received := t.Counts[recording.Sent.String()], t.Counts[recording.Confirmed.String()], t.Counts[recording.Received.String()]
	if n := t.Counts[recording.Due.String()] - sent; n > 0 {
		v.invalid(t.subject(), reason.LoadIncomplete, reason.Values{"why": "due", "count": n, "missing": share(n, t.Counts[recording.Due.String()])})
	}
	switch {
	case len(t.Errors) > 0 && sent == 0 && received == 0:
		v.invalid(t.subject(), reason.NothingMeasured, reason.Values{"why": "nothing"})
	case sent > 0 && confirmed == 0:
		v.invalid(t.subject(), reason.NothingMeasured, reason.Values{"why": "unconfirmed", "count": sent})
	case led.whole != nil && led.Counts[recording.Sent.String()] > 0 && led.Counts[recording.Confirmed.String()] == 0:
		at := t.subject()
		at.phase = led.phase.Name
		v.invalid(at, reason.NoMeasuredWindow, reason.Values{"why": "empty"})
	default:
		led.judgeFailures(v)
	}
	if t.Declared && received == 0 && (sent > 0 || len(t.Groups) > 0) && !t.Shared { // those of another process may be the ones that receive
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
	if led.whole != nil {
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

// judgeFailures looks at sends that failed, in each loop by itself, as each has latencies of its own.
func (t *Topic) judgeFailures(v *Verdict) {
	all := max(t.Counts[recording.Sent.String()], t.ErrorsOf("send")+t.ErrorsOf("request")) // what failed in a phase may have been sent before it
	for _, suffix := range t.loops() {
		failed, sent, sends := int64(t.failed(suffix)), all, t.asked()
		if len(t.loops()) > 1 {
			sent = int64(t.measured(recording.PublishLatency.String()+suffix)+t.measured(recording.RequestLatency.String()+suffix)) + failed
			sends += " of its " + map[string]recording.Loop{"": recording.Open, recording.ClosedSuffix: recording.Closed}[suffix].String() + " loop"
		}
		v.byShare(t.subject(), reason.SendsFailed, failed, sent, reason.Values{"total": sent, "sends": sends})
	}
}

// asked names what was sent to the topic.
func (t *Topic) asked() string {
	has := func(trend recording.Trend, op string) bool {
		return t.measured(trend.String())+t.measured(trend.String()+recording.ClosedSuffix) > 0 || t.ErrorsOf(op) > 0
	}
	switch requests := has(recording.RequestLatency, "request"); {
	case requests && has(recording.PublishLatency, "send"):
		return "sends and requests"
	case requests:
		return "requests"
	}
	return "sends"
}

// loops are what the names of the topic's trends end with: the plain ones and, where it has both loops, those of the closed one.
func (t *Topic) loops() []string {
	for name := range t.Trends {
		if t.OpenLoop && strings.HasSuffix(name, recording.ClosedSuffix) {
			return []string{"", recording.ClosedSuffix}
		}
	}
	return []string{""}
}

// judgeStrangers looks at messages that came in and are not accounted for here.
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
	v.byShare(at, reason.Unmeasured, t.Before, count(recording.Received), reason.Values{"why": "before", "skew": ClockSkew})
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

// judgeAbsence speaks of what was sent when no consumer of the test was there.
func (t *Topic) judgeAbsence(v *Verdict) {
	if t.Shared { // the others know
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
	if g.Group != account.ReadBack {
		if s := share(int64(g.Undelivered), expected); s > trifle {
			v.invalid(at, reason.Undelivered, reason.Values{"count": g.Undelivered, "share": s})
		}
		t.judgeLost(v, g)
	}
	for _, why := range slices.Sorted(maps.Keys(g.Why)) {
		level := reason.Invalid
		if why == account.MissingProcess && t.Shared { // the merge says it
			level = reason.Note
		}
		v.Add(at.reason(reason.Uncertain, level, reason.Values{"why": string(why), "count": g.Why[why]}))
	}
}

func (t *Topic) judgeLost(v *Verdict, g *Group) {
	if g.Lost == 0 {
		return
	}
	values := reason.Values{"count": g.Lost, "total": g.Expected, "share": share(int64(g.Lost), int64(g.Expected))}
	switch {
	case len(t.Drops) > 0:
		values["why"], values["options"] = "options", strings.Join(t.Drops, ", ")
	case t.HeldUnseen:
		values["why"] = "held"
	}
	v.note(t.subjectOf(g), reason.Lost, values)
}
