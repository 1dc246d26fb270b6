package load

import (
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Measured is what a series measured in a stretch of time. It does not change.
type Measured struct {
	Counters [metric.NumCounters]int64
	Trends   Distributions
	Errors   map[ErrorLabels]int64
}

// Distributions are what was measured of each trend, in each loop; nil where nothing was.
type Distributions [metric.NumLoops][metric.NumTrends]*hist.Histogram

// Of is a distribution, empty where nothing was measured. It is not to be changed.
func (d *Distributions) Of(l metric.Loop, t metric.Trend) *hist.Histogram {
	if h := d[l][t]; h != nil {
		return h
	}
	return &hist.Histogram{}
}

// Measured is what the series has measured so far.
func (s *Series) Measured() *Measured {
	m := &Measured{Trends: s.distributions(), Errors: s.Errors()}
	for i := range m.Counters {
		m.Counters[i] = s.counters[i].Load()
	}
	return m
}

// since is what was measured after an earlier time, of which nil is the start.
func (m *Measured) since(earlier *Measured) Measured {
	if earlier == nil {
		earlier = &Measured{}
	}
	d := Measured{Trends: m.Trends.since(&earlier.Trends), Errors: map[ErrorLabels]int64{}}
	for i := range d.Counters {
		d.Counters[i] = m.Counters[i] - earlier.Counters[i]
	}
	for labels, n := range m.Errors {
		if more := n - earlier.Errors[labels]; more > 0 {
			d.Errors[labels] = more
		}
	}
	return d
}

// Failed is how many messages are not in a trend of the producers' side because their sends failed in that loop; 0 of another trend. Those of
// which it is not known in which loop they were sent count in both.
func (m *Measured) Failed(l metric.Loop, t metric.Trend) uint64 {
	op := result.SentBy(t.String())
	var all, of int64
	for labels, n := range m.Errors {
		if labels.Op == "send" || labels.Op == "request" {
			all += n
		}
		if labels.Op == op {
			of += n
		}
	}
	other := int64(m.Trends.Of(1-l, metric.FailedLatency).Count()) //gosec:disable G115 -- a count, far below the limit
	return uint64(max(0, min(of, all-other)))
}

// distributions are those of the series so far.
func (s *Series) distributions() (all Distributions) {
	for l := range metric.Loop(metric.NumLoops) {
		for t := range metric.Trend(metric.NumTrends) {
			if h := s.Trend(l, t); h.Count() > 0 || h.Negative() > 0 {
				all[l][t] = h
			}
		}
	}
	return all
}

// since is what was measured after an earlier time.
func (d Distributions) since(earlier *Distributions) Distributions {
	for l := range d {
		for t, now := range d[l] {
			switch before := earlier[l][t]; {
			case now == nil || before == nil:
			case now.Count() == before.Count() && now.Negative() == before.Negative():
				d[l][t] = nil
			default:
				d[l][t] = now.Sub(before)
			}
		}
	}
	return d
}
