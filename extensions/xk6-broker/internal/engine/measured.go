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
	Errors   recording.Errors
	Spans    recording.Spans
}

// Distributions are those of each trend, in each loop; nil if nothing was measured.
type Distributions [recording.NumLoops][recording.NumTrends]*hist.Histogram

// Trend returns a distribution, empty if nothing was measured. It must not be changed.
func (d *Distributions) Trend(l recording.Loop, t recording.Trend) *hist.Histogram {
	if h := d[l][t]; h != nil {
		return h
	}
	return &hist.Histogram{}
}

// everyPhase is in the place of a phase.
const everyPhase = -1

// measured returns what the series has measured so far in a phase, or in all.
func (s *Series) measured(phase int) *Measured {
	m := &Measured{Trends: s.distributions(phase), Errors: recording.Errors{}}
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

// since returns what was measured after an earlier time; nil is the start. The spans are those since
// the start.
func (m *Measured) since(earlier *Measured) Measured {
	if earlier == nil {
		earlier = &Measured{}
	}
	d := Measured{Trends: m.Trends.Since(&earlier.Trends), Errors: recording.Errors{}, Spans: m.Spans}
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

// Failed returns how many messages a trend of the producers' side lacks because their sends failed in
// that loop. Those that were never handed over count in both loops.
func (m *Measured) Failed(l recording.Loop, t recording.Trend) uint64 {
	var sends, failed int64
	for labels, n := range m.Errors {
		if labels.Op == "send" || labels.Op == "request" {
			sends += n
		}
		if labels.Op == result.SentBy(t.String()) {
			failed += n
		}
	}
	other := int64(m.Trends.Trend(1-l, recording.FailedLatency).Count()) //gosec:disable G115 -- a count
	return uint64(max(0, min(failed, sends-other)))                      //gosec:disable G115 -- not negative
}

// Distributions returns those of the series so far.
func (s *Series) Distributions() Distributions { return s.distributions(everyPhase) }

// Trend returns the distribution of a trend so far.
func (s *Series) Trend(l recording.Loop, t recording.Trend) *hist.Histogram {
	d := s.distributions(everyPhase)
	return d.Trend(l, t)
}

// distributions returns those of the series so far in a phase, or in all.
func (s *Series) distributions(phase int) (all Distributions) {
	for l := range recording.Loop(recording.NumLoops) {
		for t := range recording.Trend(recording.NumTrends) {
			var found []*hist.Recorder
			for p := range s.recorders {
				if r := s.recorders[p].Load(); r != nil && (phase == everyPhase || p == phase) {
					found = append(found, r.all[l][t])
				}
			}
			if len(found) == 0 {
				continue
			}
			if h := found[0].Snapshot(found[1:]...); h.Count() > 0 || h.Negative() > 0 {
				all[l][t] = h
			}
		}
	}
	return all
}

// Since returns what was measured after an earlier time.
func (d Distributions) Since(earlier *Distributions) Distributions {
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

// wasLate reports whether anything was recorded in a phase after it, since the last call.
func (s *Series) wasLate(phase int) bool {
	r := s.recorders[phase].Load()
	return r != nil && r.late.Swap(false)
}
