package result

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// unsteady is the share of the steady windows of a topic that may be called unsteady.
const unsteady = 0.01

// course is a number of each interval of a window.
type course struct {
	name    string
	latency bool // and not a rate
	values  []float64
}

// trends returns the reasons of the topic's courses that have a trend. The last value is true if the rate that was
// due has one too.
func (t *Topic) trends() (changed []course, found []stationary.Trend, driven bool) {
	courses := slices.DeleteFunc(t.courses(), func(c course) bool { return len(c.values) < stationary.Least })
	level := unsteady / float64(max(1, len(courses)))
	if t.OpenLoop {
		_, driven = stationary.Test(t.throughput(recording.Due).values, level)
	}
	for _, c := range courses {
		if trend, ok := stationary.Test(c.values, level); ok {
			changed, found = append(changed, c), append(found, trend)
		}
	}
	return changed, found, driven
}

// judgeStationarity notes what changed in the measured window, over which a percentile is one number.
func (t *Topic) judgeStationarity(v *Verdict) {
	changed, found, driven := t.trends()
	for i, c := range changed {
		v.Add(t.notStationary(c, found[i], driven))
	}
}

// Worsening returns what became worse in the leading phase at a steady rate: a latency that grew, or messages that
// were confirmed or received ever more slowly.
func (r *Result) Worsening() (worse reason.Reason, ok bool) {
	led := r.Led()
	for i := range led.Topics {
		t := &led.Topics[i]
		changed, found, driven := t.trends()
		for k, c := range changed {
			if (found[k].By > 0) == c.latency && !driven {
				return t.notStationary(c, found[k], driven), true
			}
		}
	}
	return reason.Reason{}, false
}

func (t *Topic) notStationary(c course, trend stationary.Trend, driven bool) reason.Reason {
	values := reason.Values{"course": c.name, "way": "grew", "change": max(trend.By, -trend.By), "test": trend.String()}
	if trend.By < 0 {
		values["way"] = "fell"
	}
	if driven {
		values["driven"] = "so did the rate that was due"
	}
	return t.subject().reason(reason.NotStationary, reason.Note, values)
}

// courses returns the median and p99 of each latency, and what was confirmed and received.
func (t *Topic) courses() (all []course) {
	for _, l := range t.latencies() {
		all = append(all,
			quantiles("the p50 of "+l.label, t.OverTime[l.name], 20, func(s Summary) int64 { return s.P50 }),
			quantiles("the p99 of "+l.label, t.OverTime[l.name], 1000, func(s Summary) int64 { return s.P99 }))
	}
	all = append(all, t.throughput(recording.Confirmed))
	if !t.OnlySends {
		all = append(all, t.throughput(recording.Received))
	}
	return all
}

// quantiles returns the course of a quantile; empty if more than a tenth of the intervals have too few samples.
func quantiles(name string, all []Summary, least uint64, read func(Summary) int64) course {
	c := course{name: name, latency: true}
	all = inner(all, func(s Summary) bool { return s.Count > 0 })
	for _, s := range all {
		if s.Count >= least {
			c.values = append(c.values, float64(read(s)))
		}
	}
	if 10*len(c.values) < 9*len(all) {
		return course{}
	}
	return c
}

// throughput returns the course of a counter's rate.
func (t *Topic) throughput(counter recording.Counter) course {
	c := course{name: "the rate of messages " + counter.String()}
	for _, p := range inner(t.History, func(p Point) bool { return p.Counts[counter.String()] > 0 }) {
		if p.Seconds > 0 {
			c.values = append(c.values, float64(p.Counts[counter.String()])/p.Seconds)
		}
	}
	return c
}

// inner returns the intervals between the first and the last that match: the load went on in part of those only.
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
