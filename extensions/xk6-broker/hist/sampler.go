package hist

// Sampler thins distributions systematically: of the values of one interval after another, each in ascending order, it
// keeps every k-th. The ratio k is fixed for a whole run, and what is left over at the end of an interval is carried into
// the next, so that the kept values have the quantiles of all values.
type Sampler struct {
	ratio uint64
	skip  uint64 // how many values to pass over before the next is kept
}

// NewSampler makes a sampler that keeps one value in ratio; 0 is taken as 1, which keeps all.
func NewSampler(ratio uint64) *Sampler {
	ratio = max(ratio, 1)
	return &Sampler{ratio: ratio, skip: ratio / 2}
}

// Ratio is how many values each kept value stands for.
func (s *Sampler) Ratio() uint64 { return s.ratio }

// Take hands the kept values of an interval to yield, in nanoseconds, ascending.
func (s *Sampler) Take(interval *Histogram, yield func(v int64)) {
	for v, c := range interval.All() {
		for ; c > s.skip; s.skip = s.ratio - 1 {
			c -= s.skip + 1
			yield(v)
		}
		s.skip -= c
	}
}
