package result

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// unsteady is how many of a hundred stationary windows of a topic, at most, are said not to be.
const unsteady = 0.01

// course is a number that a window has of each interval.
type course struct {
	name    string
	latency bool // and not a rate
	values  []float64
	ends    []float64 // of the intervals, in seconds from the start of the run
}

// judgeStationarity says what changed in the measured window, over which a percentile is one number. It is a note: the numbers are those of the
// window, but another window may have others. What changed with the rate that was due is no surprise, and the note says so.
func (t *Topic) judgeStationarity(v *Verdict) {
	changes, driven := t.changes()
	for _, c := range changes {
		v.Add(t.changed(c, driven))
	}
}

// Worsening returns what got worse while the phase that leads went on, at a rate that did not change: a latency that grew, or messages that were
// confirmed or received ever more slowly. A second is an interval, and it takes [stationary.Least].
func (r *Result) Worsening() (worse reason.Reason, ok bool) {
	led := r.Led()
	for i := range led.Topics {
		t := &led.Topics[i]
		changes, driven := t.changes()
		for _, c := range changes {
			if (c.By > 0) == c.course.latency && !driven {
				return t.changed(c, driven), true
			}
		}
	}
	return reason.Reason{}, false
}

// change is what a course was found to have done.
type change struct {
	course course
	stationary.Finding
}

// changes are those of the topic's courses, and whether the rate that was due changed too.
func (t *Topic) changes() (all []change, driven bool) {
	courses := slices.DeleteFunc(t.courses(), func(c course) bool { return len(c.values) < stationary.Least })
	level := unsteady / float64(max(1, len(courses)))
	if t.OpenLoop {
		_, driven = stationary.Test(t.throughput(recording.Due).values, level)
	}
	for _, c := range courses {
		if f, changed := stationary.Test(c.values, level); changed {
			all = append(all, change{c, f})
		}
	}
	return all, driven
}

func (t *Topic) changed(c change, driven bool) reason.Reason {
	values := reason.Values{"why": "trend", "course": c.course.name, "way": "grew", "change": max(c.By, -c.By), "test": c.How()}
	if c.By < 0 {
		values["way"] = "fell"
	}
	if c.Kind == stationary.Change {
		values["why"], values["at"] = "step", c.course.ends[c.At-1]
	}
	if driven {
		values["driven"] = "so did the rate that was due"
	}
	return t.subject().reason(reason.NotStationary, reason.Note, values)
}

// courses are what is looked at: the median and p99 of each latency, and what was confirmed and received.
func (t *Topic) courses() (all []course) {
	for _, j := range judged {
		for _, suffix := range t.loops() {
			name, label := j.String()+suffix, j.Title()
			if suffix != "" {
				label += " of the closed loop"
			}
			for _, q := range []struct {
				q    float64
				read func(Summary) int64
			}{{0.5, func(s Summary) int64 { return s.P50 }}, {0.99, func(s Summary) int64 { return s.P99 }}} {
				all = append(all, quantiles(QuantileName(q.q)+" of "+label, t.OverTime[name], q.q, q.read))
			}
		}
	}
	all = append(all, t.throughput(recording.Confirmed))
	if !t.OnlySends {
		all = append(all, t.throughput(recording.Received))
	}
	return all
}

// quantiles is the course of a quantile; empty where it is not supported nearly always. The first and the last interval that have any
// values are left out: the load went on in part of them only.
func quantiles(name string, all []Summary, q float64, read func(Summary) int64) course {
	c := course{name: "the " + name, latency: true}
	all = inner(all, func(s Summary) bool { return s.Count > 0 })
	for _, s := range all {
		if supported(s.Count, q) {
			c.values, c.ends = append(c.values, float64(read(s))), append(c.ends, s.At)
		}
	}
	if 10*len(c.values) < 9*len(all) {
		return course{}
	}
	return c
}

// supported tells whether so many values support a quantile.
func supported(count uint64, q float64) bool {
	h := &hist.Histogram{}
	h.RecordN(0, count)
	return h.Supported(q)
}

// throughput is the course of a counter's rate.
func (t *Topic) throughput(of recording.Counter) course {
	c := course{name: "the rate of messages " + of.String()}
	for _, p := range inner(t.History, func(p Point) bool { return p.Counts[of.String()] > 0 }) {
		if p.Seconds > 0 {
			c.values, c.ends = append(c.values, float64(p.Counts[of.String()])/p.Seconds), append(c.ends, p.At)
		}
	}
	return c
}

// inner are the intervals between the first and the last that have something.
func inner[T any](all []T, has func(T) bool) []T {
	first := slices.IndexFunc(all, has)
	last := len(all) - 1
	for last >= 0 && !has(all[last]) {
		last--
	}
	if last-first < 2 {
		return nil
	}
	return all[first+1 : last]
}
