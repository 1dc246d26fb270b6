package engine

import (
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Measured is what a series measured in a stretch of time. It does not change.
type Measured struct {
	Counters recording.Counts
	Trends   Distributions
	Errors   map[ErrorLabels]int64
	Spans    recording.Spans
}

// Distributions are what was measured of each trend, in each loop; nil where nothing was.
type Distributions [recording.NumLoops][recording.NumTrends]*hist.Histogram

// Of is a distribution, empty where nothing was measured. It is not to be changed.
func (d *Distributions) Of(l recording.Loop, t recording.Trend) *hist.Histogram {
	if h := d[l][t]; h != nil {
		return h
	}
	return &hist.Histogram{}
}

// everyPhase is in the place of a phase.
const everyPhase = -1

// Measured returns what the series has measured so far.
func (s *Series) Measured() *Measured { return s.measured(everyPhase) }

// measured returns what the series has measured so far in a phase, or in all.
func (s *Series) measured(phase int) *Measured {
	m := &Measured{Trends: s.distributions(phase), Errors: map[ErrorLabels]int64{}}
	for p := range s.counts {
		if c := s.counts[p].Load(); c != nil && (phase == everyPhase || p == phase) {
			c.addTo(m)
		}
	}
	return m
}

func (c *counts) addTo(m *Measured) {
	for i := range c.counters {
		m.Counters[i] += c.counters[i].Load()
	}
	for i := range c.spans {
		m.Spans[i] = m.Spans[i].And(recording.Span{First: c.spans[i].first.Load(), Last: c.spans[i].last.Load()})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for labels, n := range c.errors {
		m.Errors[labels] += n
	}
}

// since returns what was measured after an earlier time, of which nil is the start. The spans are those since the start.
func (m *Measured) since(earlier *Measured) Measured {
	if earlier == nil {
		earlier = &Measured{}
	}
	d := Measured{Trends: m.Trends.since(&earlier.Trends), Errors: map[ErrorLabels]int64{}, Spans: m.Spans}
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

// empty reports whether nothing was measured.
func (m *Measured) empty() bool {
	return m.Counters == (recording.Counts{}) && m.Trends == (Distributions{}) && len(m.Errors) == 0
}

// Failed is how many messages are not in a trend of the producers' side because their sends failed in that loop; 0 of another trend. Those of
// which it is not known in which loop they were sent count in both.
func (m *Measured) Failed(l recording.Loop, t recording.Trend) uint64 {
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
	other := int64(m.Trends.Of(1-l, recording.FailedLatency).Count()) //gosec:disable G115 -- a count, far below the limit
	return uint64(max(0, min(of, all-other)))
}

// distributions are those of the series so far in a phase, or in all.
func (s *Series) distributions(phase int) (all Distributions) {
	lanes := append(s.lanes.list(), s)
	for l := range recording.Loop(recording.NumLoops) {
		for t := range recording.Trend(recording.NumTrends) {
			var recorders []*hist.Recorder
			for _, lane := range lanes {
				recorders = lane.recordersOf(recorders, phase, l, t)
			}
			if len(recorders) == 0 {
				continue
			}
			if h := recorders[0].Snapshot(recorders[1:]...); h.Count() > 0 || h.Negative() > 0 {
				all[l][t] = h
			}
		}
	}
	return all
}

// recordersOf appends those of a trend in a phase, or in all.
func (s *Series) recordersOf(all []*hist.Recorder, phase int, l recording.Loop, t recording.Trend) []*hist.Recorder {
	for p := range s.recorders {
		if r := s.recorders[p].Load(); r != nil && (phase == everyPhase || p == phase) {
			all = append(all, r.of[l][t])
		}
	}
	return all
}

// Trend is a copy of the distribution of a trend so far.
func (s *Series) Trend(l recording.Loop, t recording.Trend) *hist.Histogram {
	d := s.distributions(everyPhase)
	return d.Of(l, t)
}

// wasLate reports whether anything was recorded in a phase after it, since this was last asked.
func (s *Series) wasLate(phase int) (late bool) {
	for _, lane := range append(s.lanes.list(), s) {
		if r := lane.recorders[phase].Load(); r != nil && r.late.Swap(false) {
			late = true
		}
	}
	return late
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
