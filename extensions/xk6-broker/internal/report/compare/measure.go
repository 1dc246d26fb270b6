package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Measure is a number that can be read from a topic of a run.
type Measure struct {
	Name, Stat string // "e2e_latency", "p99"; "lost", ""
	Unit       string // "ns", "/s" or "", a count
	read       func(*result.Topic) (float64, error)
	// doubt says why it may be less than the truth, and why more; nil where neither can be.
	doubt func(*result.Topic) (low, high string)
}

// trends are those that a comparison shows, in its order: first those that a run is about, what went through and what was lost, then what
// they are made of, and at the end what the load generator did.
var trends = []metric.Trend{
	metric.E2ELatency, metric.PublishLatency, metric.RequestLatency,
	metric.E2ETime, metric.DeliveryWait, metric.PublishTime, metric.RequestTime, metric.FailedLatency, metric.SettleTime, metric.RedeliveryTime,
	metric.ScheduleLag, metric.GeneratorLag,
}

// foremost is how many of them stand before the rates.
const foremost = 3

// columns are those of each trend.
var columns = []string{"p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max"}

// asked is how many of the rates are what the broker did; the others are what was asked of it.
const asked = 2

// rated are the counters that are compared by second; counted are those that should be 0.
var (
	rated   = []string{"confirmed", "received", "sent", "due"}
	counted = []string{"lost", "undelivered", "duplicated", "reordered", "redelivered", "corrupted", "errors"}
)

// measures are all that a comparison shows.
func measures() []Measure {
	var all []Measure
	latencies := func(trends []metric.Trend) {
		for _, t := range trends {
			for _, stat := range columns {
				m, _ := latencyOf(t.String(), stat) // the tables hold no mistake
				all = append(all, m)
			}
		}
	}
	latencies(trends[:foremost])
	for _, name := range rated[:asked] {
		all = append(all, rateOf(name))
	}
	for _, name := range counted {
		all = append(all, countOf(name))
	}
	latencies(trends[foremost:])
	for _, name := range rated[asked:] {
		all = append(all, rateOf(name))
	}
	return all
}

// rateOf is a counter per second while it went on. The first and the last interval are left out where there are others: it went on in
// part of them only.
func rateOf(name string) Measure {
	return Measure{Name: name, Stat: "rate", Unit: "/s", read: func(t *result.Topic) (float64, error) {
		busy := func(p result.Point) bool { return p.Counts[name] > 0 }
		first := slices.IndexFunc(t.History, busy)
		if first < 0 {
			return 0, fmt.Errorf("nothing was %s", name)
		}
		last := len(t.History) - 1
		for !busy(t.History[last]) {
			last--
		}
		if last-first >= 2 {
			first, last = first+1, last-1
		}
		var n int64
		var seconds float64
		for _, p := range t.History[first : last+1] {
			n += p.Counts[name]
			seconds += p.Seconds
		}
		if seconds == 0 {
			return 0, fmt.Errorf("no time went by while messages were %s", name)
		}
		return float64(n) / seconds, nil
	}}
}

func countOf(name string) Measure {
	return Measure{Name: name, read: func(t *result.Topic) (float64, error) {
		switch name {
		case "errors":
			var n int64
			for _, e := range t.Errors {
				n += e.Count
			}
			return float64(n), nil
		case "corrupted":
			if t.Counts[metric.Received.String()] == 0 {
				return 0, errors.New("nothing was received, so what was corrupted is not known")
			}
			return float64(t.Counts[name]), nil
		}
		if err := unobserved(t, name); err != nil {
			return 0, err
		}
		var n uint64
		for _, g := range t.Groups {
			n += map[string]uint64{
				"lost": g.Lost, "undelivered": g.Undelivered, "duplicated": g.Duplicated, "reordered": g.Reordered, "redelivered": g.Redelivered,
			}[name]
		}
		return float64(n), nil
	}}
}

// unobserved says why it is not known how many messages were lost, undelivered and so on, where it is not.
func unobserved(t *result.Topic, name string) error {
	if len(t.Groups) == 0 {
		return fmt.Errorf("nothing was received, so what was %s is not known", name)
	}
	for i := range t.Groups {
		if doubt := t.Groups[i].Doubt(name); doubt != "" {
			return errors.New(doubt)
		}
	}
	switch aliased, unaccounted := t.Counts[metric.Aliased.String()], t.Counts[metric.Unaccounted.String()]; {
	case aliased > 0:
		return fmt.Errorf("%d messages came in that were sent to another address: of these it is not known what was %s", aliased, name)
	case unaccounted > 0 && !t.OnlySends:
		return fmt.Errorf("%d messages were sent without a stamp: of these it is not known what was %s", unaccounted, name)
	}
	return nil
}

// latencyOf is a percentile, the maximum or the mean of a trend, in ns.
func latencyOf(trend, stat string) (Measure, error) {
	var of func(*hist.Histogram) (float64, error)
	var reach result.Condition
	switch {
	case stat == "max":
		reach.Method = "max"
		of = func(h *hist.Histogram) (float64, error) { return float64(h.Max()), nil }
	case stat == "mean":
		reach.Method = "avg"
		of = func(h *hist.Histogram) (float64, error) { return h.Mean(), nil } //nolint:unparam // the others can fail
	case strings.HasPrefix(stat, "p"):
		p, err := strconv.ParseFloat(stat[1:], 64)
		if err != nil || !(p > 0 && p < 100) {
			return Measure{}, fmt.Errorf("%q is not a percentile: write p50, p99 or p99.9", stat)
		}
		q, _ := strconv.ParseFloat(shift(stat[1:]), 64) // 99.9/100 in floating point is not 0.999
		reach.Method, reach.Quantile = "p", q
		of = func(h *hist.Histogram) (float64, error) {
			if !h.Supported(q) {
				return 0, fmt.Errorf("%d samples do not support %s: at least 10 must lie beyond it", h.Count(), stat)
			}
			return float64(h.Quantile(q)), nil
		}
	default:
		return Measure{}, fmt.Errorf("%q is not p50, p99 or another percentile, max or mean", stat)
	}
	return Measure{Name: trend, Stat: stat, Unit: "ns", read: func(t *result.Topic) (float64, error) {
		h := t.Trends[trend]
		if h == nil || h.Count() == 0 {
			return 0, fmt.Errorf("no %s was measured", trend)
		}
		return of(h)
	}, doubt: func(t *result.Topic) (low, high string) {
		return t.TooLow(reach, trend), t.TooHigh(reach, trend)
	}}, nil
}

// doubts gives why any of the repetitions may know less than the truth, and why more.
func (m Measure) doubts(topics []*result.Topic) (low, high string) {
	if m.doubt == nil {
		return "", ""
	}
	for _, t := range topics {
		if _, err := m.read(t); err != nil {
			continue
		}
		below, above := m.doubt(t)
		low, high = cmp.Or(low, below), cmp.Or(high, above)
	}
	return low, high
}

// shift moves the decimal point of a percentile two places, as text: "99.9" is "0.999".
func shift(percent string) string { return percent + "e-2" }

// values reads a measure from every repetition that knows it, and the first reason of one that does not.
func (m Measure) values(topics []*result.Topic) (values []float64, reason error) {
	for _, t := range topics {
		v, err := m.read(t)
		switch {
		case err == nil:
			values = append(values, v)
		case reason == nil:
			reason = err
		}
	}
	return values, reason
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
