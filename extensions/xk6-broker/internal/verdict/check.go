//gosec:disable G115 -- counts, far below their limits
package verdict

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// judgeTopic judges a topic, and its latencies in the leading phase.
func (j *judge) judgeTopic(t, led topic) {
	j.judgeSending(t, led)
	if t.Declared && t.count(recording.Received) == 0 && (t.count(recording.Sent) > 0 || len(t.Groups) > 0) && !t.Shared {
		j.invalid(t.place(), reason.NothingReceived, nil) // another process may be the receiver
	}
	j.judgeStrangers(t)
	for i := range t.Groups {
		j.judgeGroup(t, &t.Groups[i])
		j.judgeConsumer(t, &t.Groups[i])
	}
	j.judgeLateness(led)
	j.judgeClocks(led)
	if led.During != nil {
		j.judgeStationarity(led)
	}
	if t.Info.Embedded {
		j.note(t.place(), reason.EmbeddedBroker, nil)
	}
	if t.ClosedLoop {
		why := "all"
		if t.OpenLoop {
			why = "part"
		}
		j.note(t.place(), reason.ClosedLoop, facts{"why": why})
	}
}

// judgeSending adds messages that were not sent, and sends and requests that failed.
func (j *judge) judgeSending(t, led topic) {
	due, sent := t.count(recording.Due), t.count(recording.Sent)
	if n := due - sent; n > 0 {
		j.invalid(t.place(), reason.LoadIncomplete, facts{"why": "due", "count": n, "missing": share(n, due)})
	}
	switch {
	case len(t.Errors) > 0 && sent == 0 && t.count(recording.Received) == 0:
		j.invalid(t.place(), reason.NothingMeasured, facts{"why": "nothing"})
	case sent > 0 && t.count(recording.Confirmed) == 0:
		j.invalid(t.place(), reason.NothingMeasured, facts{"why": "unconfirmed", "count": sent})
	case led.During != nil && led.count(recording.Sent) > 0 && led.count(recording.Confirmed) == 0:
		j.invalid(place{topic: t.name, phase: led.During.Name}, reason.NoMeasuredWindow, facts{"why": "empty"})
	default:
		j.judgeFailures(led, "send", recording.PublishLatency)
		j.judgeFailures(led, "request", recording.RequestLatency)
	}
}

// judgeFailures adds the operations that failed.
func (j *judge) judgeFailures(t topic, op string, trend recording.Trend) {
	failed := t.errorsOf(op)
	total := failed
	for _, suffix := range suffixes {
		total += int64(t.measured(trend.String() + suffix))
	}
	j.byShare(t.place(), reason.SendsFailed, failed, total, facts{"total": total, "sends": op + "s"})
}

// strangers are the counters of messages that are in no account of the topic that received them.
var strangers = []struct {
	counter recording.Counter
	level   reason.Level
	code    reason.Code
	why     string
}{
	{recording.Aliased, reason.Invalid, reason.Uncertain, "aliased"},
	{recording.Unaccounted, reason.Note, reason.NotStamped, ""},
	{recording.Foreign, reason.Note, reason.Foreign, "messages"},
	{recording.StrayReplies, reason.Note, reason.Foreign, "replies"},
	{recording.Routed, reason.Note, reason.Routed, "here"},
}

// judgeStrangers adds received messages that are in no account of the topic, or have no latency.
func (j *judge) judgeStrangers(t topic) {
	at := t.place()
	if n := t.count(recording.Negative); n > 0 {
		values := facts{"why": "negative", "count": n}
		if t.Apart != nil {
			values["clocks"], values["apart"] = clocksText(t.Apart), time.Duration(t.Apart.Most())
		}
		j.invalid(at, reason.Clocks, values)
	}
	if n := t.count(recording.Earlier); n > 0 {
		j.invalid(at, reason.EarlierTest, facts{"why": "early", "count": n, "skew": recording.ClockSkew})
	}
	for _, s := range strangers {
		n := t.count(s.counter)
		if n == 0 || s.counter == recording.Unaccounted && t.OnlySends {
			continue
		}
		values := facts{"count": n}
		if s.why != "" {
			values["why"] = s.why
		}
		if s.counter == recording.Aliased {
			values["broker"] = t.Broker
		}
		j.Add(at.reason(s.code, s.level, values))
	}
}

// judgeGroup adds the messages that a group did not receive.
func (j *judge) judgeGroup(t topic, g *result.Group) {
	at, expected := t.placeOf(g), int64(g.Expected)
	if !t.Shared { // else another process may have been the consumer
		all := (t.count(recording.Confirmed) - t.count(recording.Unaccounted)) * int64(max(1, g.Subscribers))
		if n := all - int64(g.Expected+g.Unexpected); n > 0 {
			j.note(at, reason.NoConsumer, facts{"why": "away", "count": n})
		}
	}
	if g.Group != account.ReadBack { // which is always at the end of the test
		j.byShare(at, reason.Drained, int64(g.Drained), expected, nil)
	}
	if s := share(int64(g.Undelivered), expected); s > minorLoss {
		j.invalid(at, reason.Undelivered, facts{"count": g.Undelivered, "share": s})
	}
	if g.Lost > 0 {
		values := facts{"count": g.Lost, "total": g.Expected, "share": share(int64(g.Lost), expected)}
		if t.HeldUnseen {
			values["why"] = "held"
		}
		j.note(at, reason.Lost, values)
	}
	for _, why := range slices.Sorted(maps.Keys(g.Why)) {
		level := reason.Invalid
		if why == account.MissingProcess && t.Shared { // the merge decides
			level = reason.Note
		}
		j.Add(at.reason(reason.Uncertain, level, facts{"why": string(why), "count": g.Why[why]}))
	}
}

// slowConsumer is how long the median message may wait in the client's buffer without a note.
const slowConsumer = 10 * time.Millisecond

// judgeConsumer notes a consumer that is slower than its producers.
func (j *judge) judgeConsumer(t topic, g *result.Group) {
	wait, all := g.Trends[recording.DeliveryWait.String()], g.Trends[recording.E2ELatency.String()]
	if wait == nil || all == nil || !wait.Supported(0.5) {
		return
	}
	if p50 := wait.Quantile(0.5); time.Duration(p50) > slowConsumer && 2*p50 > all.Quantile(0.5) {
		j.note(t.placeOf(g), reason.ConsumersSlower, facts{"why": "buffered", "wait": time.Duration(p50)})
	}
}

// inner returns the intervals between the first and the last that match.
func inner[T any](all []T, match func(T) bool) []T {
	first := slices.IndexFunc(all, match)
	last := len(all) - 1
	for last >= 0 && !match(all[last]) {
		last--
	}
	if last-first < 2 {
		return nil
	}
	return all[first+1 : last]
}

// unsteady is the share of the steady windows of a topic that may be called unsteady.
const unsteady = 0.01

// course is a number of each interval of a window, and its trend.
type course struct {
	name    string
	latency bool // and not a rate
	values  []float64
	trend   stationary.Trend
}

// changes returns the courses of the topic that have a trend; none if the rate that was due has one.
func (t topic) changes() (changed []course) {
	courses := []course{t.throughput(recording.Confirmed), t.throughput(recording.Received)}
	for _, l := range latencies() {
		courses = append(courses, median(l, t.OverTime[l.name]))
	}
	level := unsteady / float64(len(courses))
	if t.OpenLoop {
		if _, driven := stationary.Test(t.throughput(recording.Due).values, level); driven {
			return nil
		}
	}
	for _, c := range courses {
		var ok bool
		if c.trend, ok = stationary.Test(c.values, level); ok {
			changed = append(changed, c)
		}
	}
	return changed
}

// judgeStationarity notes the trends in the measured window, over which a percentile is one number.
func (j *judge) judgeStationarity(t topic) {
	for _, c := range t.changes() {
		j.Add(t.notStationary(c))
	}
}

// Worsening returns the first trend for the worse in the leading phase at a steady rate: a latency
// that grew, or messages that were confirmed or received ever more slowly.
func Worsening(r *result.Result) (worse reason.Reason, ok bool) {
	for _, t := range topicsOf(r.Led()) {
		for _, c := range t.changes() {
			if (c.trend.By > 0) == c.latency {
				return t.notStationary(c), true
			}
		}
	}
	return reason.Reason{}, false
}

func (t topic) notStationary(c course) reason.Reason {
	values := facts{"course": c.name, "way": "grew", "change": math.Abs(c.trend.By), "test": c.trend.String()}
	if c.trend.By < 0 {
		values["way"] = "fell"
	}
	return t.place().reason(reason.NotStationary, reason.Note, values)
}

// median returns the course of a latency's median; an empty one if too few intervals support it.
func median(l latency, all []result.Summary) course {
	c := course{name: "the p50 of " + l.label, latency: true}
	all = inner(all, func(s result.Summary) bool { return s.Count > 0 })
	for _, s := range all {
		if s.Count >= 20 {
			c.values = append(c.values, float64(s.P50))
		}
	}
	if 10*len(c.values) < 9*len(all) {
		return course{}
	}
	return c
}

// throughput returns the course of a counter's rate.
func (t topic) throughput(counter recording.Counter) course {
	c := course{name: "the rate of messages " + counter.String()}
	for _, p := range inner(t.History, func(p result.Point) bool { return p.Counts[counter.String()] > 0 }) {
		if p.Seconds > 0 {
			c.values = append(c.values, float64(p.Counts[counter.String()])/p.Seconds)
		}
	}
	return c
}
