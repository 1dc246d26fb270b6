package stationary

import (
	"math"
	"slices"
)

const (
	// resolution is how finely numbers are known, of what they are: less than it is no noise to measure a change by.
	resolution = 1e-3
	// side is the least part of the series that a change has before it and after it: what is shorter is an outlier.
	side = 4
	// likely is the least autocorrelation that is reckoned with.
	likely = 0.5
	// few is how many numbers it is for at most: of more, ranks tell what is plain to see.
	few = 40
)

// shift is a change by its size: where the means before and after it are furthest apart, by their standard error.
type shift struct {
	at     int
	t      float64 // Student's, if it were the only place
	free   int     // degrees of freedom
	places int     // that it was chosen of
	rest   []float64
}

// fitShift takes numbers of which each group has a mean of its own, and a change is by as much in all of them.
func fitShift(x []float64, groups []int) (best shift) {
	n := len(x)
	x = within(x, groups)
	best = shift{at: n / side, free: n - 1 - len(slices.Compact(slices.Sorted(slices.Values(groups)))), rest: x}
	if best.free < 1 {
		return best
	}
	all := dot(x, x)
	for at := n / side; at <= n-n/side; at++ {
		by, after, size := shiftAt(x, groups, at)
		if after == nil {
			continue
		}
		best.places++
		unexplained := max(all-by*by*size, float64(n)*resolution*resolution)
		if t := math.Abs(by) * math.Sqrt(size*float64(best.free)/unexplained); t > best.t {
			best.at, best.t = at, t
			best.rest = make([]float64, n)
			for i, v := range x {
				best.rest[i] = v - by*after[i]
			}
		}
	}
	best.rest = stepAt(best.rest, best.at).rest // an outlier, such as the interval in which it changed, moves means, and would make all others alike
	return best
}

// shiftAt is by how much numbers, which are what they are more than the means of their groups, are more from a place on; what being behind it is more than the
// mean of that, of each; and the sum of the squares of these. The second is nil where no group has numbers on both sides.
func shiftAt(x []float64, groups []int, at int) (by float64, after []float64, size float64) {
	after = make([]float64, len(x))
	for i := at; i < len(x); i++ {
		after[i] = 1
	}
	after = within(after, groups)
	if size = dot(after, after); size < 1e-9 {
		return 0, nil, 0
	}
	return dot(x, after) / size, after, size
}

// worsley is how probable a change as large is where there is none, by the test of Worsley (1979): the greatest of as many t statistics as there are places, by
// Bonferroni's bound. Few numbers do not tell how alike neighbours are, and noise whose neighbours are looks like a change: so they are taken to be so.
func worsley(s shift) float64 {
	if s.free < 1 || len(s.rest) > few {
		return 1
	}
	alike := max(inflation(s.rest), inflated(likely, float64(len(s.rest))))
	return min(1, float64(s.places)*student(s.t/math.Sqrt(alike), s.free))
}

// student is how probable a t as far from 0, of so many degrees of freedom, is (Abramowitz and Stegun, 26.7.3 and 26.7.4).
func student(t float64, free int) float64 {
	angle := math.Atan2(t, math.Sqrt(float64(free)))
	sin, cos := math.Sincos(angle)
	odd := free % 2
	sum, term := 0.0, math.Pow(cos, float64(odd))
	for k := odd; k <= free-2; k += 2 {
		sum += term
		term *= cos * cos * float64(k+1) / float64(k+2)
	}
	if odd == 1 {
		return max(0, 1-2/math.Pi*(angle+sin*sum))
	}
	return max(0, 1-sin*sum)
}

// within is what numbers are more than the mean of their group.
func within(x []float64, groups []int) []float64 {
	sums, counts := map[int]float64{}, map[int]float64{}
	for i, v := range x {
		sums[groups[i]] += v
		counts[groups[i]]++
	}
	rest := make([]float64, len(x))
	for i, v := range x {
		rest[i] = v - sums[groups[i]]/counts[groups[i]]
	}
	return rest
}

// scaled are the logarithms of numbers or, where they are not all more than 0, what they are of their mean.
func scaled(x []float64) []float64 {
	of := make([]float64, len(x))
	mean := 0.0
	for i, v := range x {
		mean += math.Abs(v) / float64(len(x))
		of[i] = math.Log(v)
	}
	if slices.Min(x) > 0 {
		return of
	}
	for i, v := range x {
		of[i] = v / max(mean, math.SmallestNonzeroFloat64)
	}
	return of
}

func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
