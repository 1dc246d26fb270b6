package verdict

import (
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// unsteady is the share of the steady windows of a topic that may be called unsteady.
const unsteady = 0.01

// course is a number of each interval of a window, and its trend.
type course struct {
	name    string
	latency bool // and not a rate
	values  []float64
	trend   stationary.Trend
}

// changes returns the courses of the topic that have a trend. driven is true if the rate that was due has one too.
func (t topic) changes() (changed []course, driven bool) {
	courses := []course{t.throughput(recording.Confirmed), t.throughput(recording.Received)}
	for _, l := range latencies() {
		courses = append(courses, median(l, t.OverTime[l.name]))
	}
	level := unsteady / float64(len(courses))
	if t.OpenLoop {
		_, driven = stationary.Test(t.throughput(recording.Due).values, level)
	}
	for _, c := range courses {
		var ok bool
		if c.trend, ok = stationary.Test(c.values, level); ok {
			changed = append(changed, c)
		}
	}
	return changed, driven
}

// judgeStationarity notes the trends in the measured window, over which a percentile is one number.
func (j *judge) judgeStationarity(t topic) {
	changed, driven := t.changes()
	for _, c := range changed {
		j.Add(t.notStationary(c, driven))
	}
}

// Worsening returns the first trend for the worse in the leading phase at a steady rate: a latency that grew, or
// messages that were confirmed or received ever more slowly.
func Worsening(r *result.Result) (worse reason.Reason, ok bool) {
	for _, t := range topicsOf(r.Led()) {
		changed, driven := t.changes()
		for _, c := range changed {
			if (c.trend.By > 0) == c.latency && !driven {
				return t.notStationary(c, driven), true
			}
		}
	}
	return reason.Reason{}, false
}

func (t topic) notStationary(c course, driven bool) reason.Reason {
	values := reason.Values{"course": c.name, "way": "grew", "change": max(c.trend.By, -c.trend.By), "test": c.trend.String()}
	if c.trend.By < 0 {
		values["way"] = "fell"
	}
	if driven {
		values["driven"] = "so did the rate that was due"
	}
	return t.place().reason(reason.NotStationary, reason.Note, values)
}

// median returns the course of a latency's median; an empty one if more than a tenth of the intervals have too few samples.
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
