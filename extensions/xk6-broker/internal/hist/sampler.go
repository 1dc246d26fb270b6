//gosec:disable G115 -- counts, far below the limits
package hist

import "math"

// Sampler keeps one value in ratio of the intervals of a run, with the quantiles of all values.
//
// Of each interval it keeps values at equal distances in rank order. The first rank differs from
// interval to interval, so that errors cancel out. The number kept is exact over the run.
type Sampler struct {
	ratio uint64
	seen  uint64
	kept  uint64
	start float64 // of the first rank, 0 to 1 of a distance
}

// NewSampler makes a sampler that keeps one value in ratio. 0 is 1 and keeps all.
func NewSampler(ratio uint64) *Sampler { return &Sampler{ratio: max(ratio, 1), start: 0.5} }

// Take gives the kept values of an interval in nanoseconds, ascending.
func (s *Sampler) Take(interval *Histogram, yield func(v int64)) {
	s.seen += interval.Count()
	most := (s.seen+s.ratio/2)/s.ratio - s.kept
	s.kept += most
	distance := float64(interval.Count()) / float64(most)
	var rank, taken uint64
	for v, n := range interval.All() {
		rank += n
		for taken < most && (float64(taken)+s.start)*distance < float64(rank) {
			yield(v)
			taken++
		}
	}
	_, s.start = math.Modf(s.start + 1/math.Phi) // any part of the sequence is spread evenly
}
