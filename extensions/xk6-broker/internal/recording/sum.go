package recording

import (
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Parts are the distributions that make up one.
type Parts []hist.Packed

// Histogram returns the distribution of all parts; nil if there are none.
func (p Parts) Histogram() *hist.Histogram {
	if len(p) == 0 {
		return nil
	}
	h := &hist.Histogram{}
	for _, packed := range p {
		packed.AddTo(h)
	}
	return h
}

// Count returns how many values the parts have.
func (p Parts) Count() (n uint64) {
	for _, packed := range p {
		n += packed.Count()
	}
	return n
}

// Sums is the sum of the records of one key.
type Sums struct {
	Counts      Counts
	Errors      Errors
	Latencies   [NumLoops][NumTrends]Parts
	Spans       Spans
	Outstanding uint64 // the most
	Backlog     *int64 // the most; nil if it is not known
}

// Sum adds up the records of intervals whose keys match, by their keys. A nil match takes all.
func Sum(intervals []*Interval, match func(Key) bool) map[Key]*Sums {
	sums := map[Key]*Sums{}
	for _, i := range intervals {
		for k := range i.Records {
			r := &i.Records[k]
			if match != nil && !match(r.Key) {
				continue
			}
			if sums[r.Key] == nil {
				sums[r.Key] = &Sums{}
			}
			sums[r.Key].add(r)
		}
	}
	return sums
}

func (s *Sums) add(r *Record) {
	for c, n := range r.Counts {
		s.Counts[c] += n
	}
	s.Errors = s.Errors.with(r.Errors)
	s.Spans = s.Spans.and(r.Spans)
	s.Outstanding = max(s.Outstanding, r.Outstanding)
	s.Backlog = most(s.Backlog, r.Backlog)
	for l := range r.Latencies {
		for t, packed := range r.Latencies[l] {
			if !packed.Empty() {
				s.Latencies[l][t] = append(s.Latencies[l][t], packed)
			}
		}
	}
}

// Hiccups adds up the hiccups of intervals in phases that match; nil if there are none. A nil match takes all.
func Hiccups(intervals []*Interval, match func(phase string) bool) *hist.Histogram {
	var all Parts
	for _, i := range intervals {
		for phase, h := range i.Hiccups {
			if match == nil || match(phase) {
				all = append(all, h)
			}
		}
	}
	return all.Histogram()
}
