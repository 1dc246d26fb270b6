//gosec:disable G115 -- counts, far below their limits
package hist

// Sampler thins the intervals of a run: of every k values it keeps one, k being fixed, such that the kept values have the
// quantiles of all values.
//
// Within one interval that is a systematic sample: every k-th value in rank order, the first being the middle one of the
// first k. Were every interval sampled on its own, or only the phase carried over, the error of up to half a rank step
// would add up from interval to interval, fastest where the load is steadiest. So the sampler remembers, for each bucket,
// how many of its values nothing stands for yet, and the next interval makes up for it: for every value v, what is kept up
// to v stands for all there was up to v, give or take a few k, however long the run.
type Sampler struct {
	ratio int64
	owed  [rows]*[rowChunks]*[chunkLen]int64 // values taken less k for each kept, by bucket

	// The interval that is being thinned: its values, how many there are up to each of them, and how many values are owed
	// up to there, each with a zero in front.
	values []int64
	slots  []*int64
	ranks  []int64
	debts  []int64
}

// NewSampler makes a sampler that keeps one value in ratio; 0 is taken as 1, which keeps all.
func NewSampler(ratio uint64) *Sampler {
	return &Sampler{ratio: int64(max(ratio, 1))}
}

// Ratio is how many values each kept value stands for.
func (s *Sampler) Ratio() uint64 { return uint64(s.ratio) }

// Take hands the kept values of an interval to yield, in nanoseconds as [Histogram.Quantile] reports them, ascending.
func (s *Sampler) Take(interval *Histogram, yield func(v int64)) {
	if s.ratio == 1 { // nothing is left out, and nothing is owed
		for v, n := range interval.All() {
			for range n {
				yield(v)
			}
		}
		return
	}
	s.values, s.slots = s.values[:0], s.slots[:0]
	s.ranks, s.debts = append(s.ranks[:0], 0), append(s.debts[:0], 0)
	var rank, debt int64
	for r := range s.owed {
		if s.owed[r] == nil {
			if interval.rows[r] == nil {
				continue
			}
			s.owed[r] = new([rowChunks]*[chunkLen]int64)
		}
		for c := range s.owed[r] {
			counts := interval.rows[r].chunk(c)
			if s.owed[r][c] == nil {
				if counts == nil {
					continue
				}
				s.owed[r][c] = new([chunkLen]int64)
			}
			counts = counts.orEmpty()
			for i := range s.owed[r][c] {
				slot := &s.owed[r][c][i]
				if n := counts[i]; n != 0 {
					*slot += int64(n)
					rank += int64(n)
					s.values = append(s.values, min(highest(r<<rowBits+c<<chunkBits+i), interval.max))
					s.slots = append(s.slots, slot)
					s.ranks = append(s.ranks, rank)
					s.debts = append(s.debts, debt+*slot)
				}
				debt += *slot
			}
		}
	}
	s.debts[len(s.debts)-1] = debt
	s.divide(0, len(s.values), 0, s.steps(len(s.values), 0, rank), yield)
}

// divide keeps b-a of the values numbered lo to hi, a having been kept of those before. What is kept up to the middle
// settles what is owed there, as near as a and b allow, and so on in both halves: so the error of one place does not push
// the next.
func (s *Sampler) divide(lo, hi int, a, b int64, yield func(int64)) {
	if a == b {
		return
	}
	if hi-lo == 1 {
		*s.slots[lo] -= (b - a) * s.ratio
		for range b - a {
			yield(s.values[lo])
		}
		return
	}
	mid := (lo + hi) / 2
	m := s.steps(mid, max(a, b-(s.ranks[hi]-s.ranks[mid])), min(b, a+s.ranks[mid]-s.ranks[lo]))
	s.divide(lo, mid, a, m, yield)
	s.divide(mid, hi, m, b, yield)
}

// steps is how many values ought to be kept of the first i, to the nearest, but from least to most.
func (s *Sampler) steps(i int, least, most int64) int64 {
	return min(max((s.debts[i]+s.ratio/2)/s.ratio, least), most)
}
