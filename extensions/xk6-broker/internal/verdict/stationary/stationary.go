// Package stationary tells whether a series of numbers, one for each interval of time, stayed what it was: whether it has a trend, or a
// place from which on it is another. Two tests are of ranks, so that a few outliers decide nothing, and one is of how large a change is, for ranks of few numbers
// prove little; all allow for neighbours being alike.
package stationary

import (
	"fmt"
	"math"
	"slices"
)

const (
	// Least is how many numbers it takes.
	Least = 12
	// relevant is how much of its level a series must have changed by to be worth a word: of a long run, a trifle is significant too.
	relevant = 0.05
	// closer is how much closer a change must come to the numbers than a trend does, as it may be at any place.
	closer = 0.97
	// The parts of the level that the tests have. Worsley's is there for changes that are plain to see, which need no more.
	ofTrend, ofRanks, ofSize = 0.5, 0.4, 0.1
)

// Kind is how a series changed.
type Kind string

// Kinds.
const (
	Trend  Kind = "trend"
	Change Kind = "change"
)

// Finding is a series that is not stationary.
type Finding struct {
	Kind Kind
	Test string  // by which it was found
	P    float64 // how probable as much is in a series that is
	By   float64 // how much it changed, of what it was at first: 0.2 is a fifth more
	At   int     // of a change, the first number after it
}

// How names the test, and how probable its finding is in a series that is stationary.
func (f Finding) How() string {
	if f.P == 0 { // what is less cannot be told from it
		return f.Test + ", p<1e-15"
	}
	return fmt.Sprintf("%s, p=%.2g", f.Test, f.P)
}

// Test looks for a trend by the test of Mann and Kendall, and for a change by Pettitt's and by Worsley's, each at its part of the level: of so many series that are stationary, at most, one is found not to be. It is false
// where the series passes for stationary, where it changed by next to nothing, and where it is too short to tell.
//
// Neighbouring intervals are alike where a queue or a cache outlives them, and then chance alone makes what looks like a trend. So the variance
// of the statistics is that of as many numbers as there would be without: n/n* = 1 + 2·Σ(1-k/n)·φᵏ, with the autocorrelation φ of first order of
// what is left without the trend, or the change (Yue and Wang, 2004, for Mann and Kendall's test).
func Test(x []float64, level float64) (Finding, bool) {
	if len(x) < Least {
		return Finding{}, false
	}
	return test(x, scaled(x), make([]int, len(x)), level, relative, func(s step) float64 { return relative(s.before, s.after) })
}

// TestLog is Test of numbers whose logarithms are given: what is left without a trend, on which the correction goes by, is that of one by which they grow
// by the same percentage each time. Each is of a group, and of it there is looked at what it is of the mean of that.
func TestLog(logs []float64, groups []int, level float64) (Finding, bool) {
	if len(logs) < Least {
		return Finding{}, false
	}
	rest := within(logs, groups)
	return test(rest, rest, groups, level, func(from, to float64) float64 { return math.Expm1(to - from) }, func(s step) float64 {
		by, _, _ := shiftAt(rest, groups, s.at) // the groups' means have some of it
		return math.Expm1(by)
	})
}

func test(x, scaled []float64, groups []int, level float64, grown func(from, to float64) float64, changed func(step) float64) (Finding, bool) {
	line, ranked, sized := fitLine(x), fitStep(x), fitShift(scaled, groups)
	trend := Finding{Kind: Trend, Test: "Mann-Kendall test", P: mannKendall(x, line), By: grown(line.first, line.last)}
	change, step := Finding{Kind: Change, Test: "Pettitt's test", P: pettitt(x, ranked)}, ranked
	found := change.P < ofRanks*level
	if p := worsley(sized); !found && p < ofSize*level {
		change.Test, change.P, step, found = "Worsley's test", p, stepAt(x, sized.at), true
	}
	change.By, change.At = changed(step), step.at
	f := trend
	switch trended := trend.P < ofTrend*level; {
	case !trended && !found:
		return f, false
	case !trended || found && step.misfit < closer*line.misfit:
		f = change
	}
	return f, math.Abs(f.By) >= relevant
}

// relative is by how much of the one another is more.
func relative(from, to float64) float64 {
	if from <= 0 {
		return math.Copysign(1, to-from) // of nothing, anything is all
	}
	return to/from - 1
}

// line is a trend: Theil and Sen's, the median of the slopes between any two numbers.
type line struct {
	first, last float64
	rest        []float64 // without it
	misfit      float64
}

func fitLine(x []float64) line {
	n := len(x)
	slopes := make([]float64, 0, n*(n-1)/2)
	for i := range x {
		for j := i + 1; j < n; j++ {
			slopes = append(slopes, (x[j]-x[i])/float64(j-i))
		}
	}
	slope := Median(slopes)
	flat := make([]float64, n)
	for i, v := range x {
		flat[i] = v - slope*float64(i)
	}
	l := line{rest: flat, first: Median(flat)}
	l.last = l.first + slope*float64(n-1)
	l.misfit = misfit(flat, l.first)
	return l
}

// mannKendall is how probable as many, or as few, pairs in ascending order are where there is no trend.
func mannKendall(x []float64, l line) float64 {
	n, s := float64(len(x)), 0.0
	for i := range x {
		for _, v := range x[i+1:] {
			s += sign(v - x[i])
		}
	}
	variance := n * (n - 1) * (2*n + 5)
	for _, t := range ties(x) {
		variance -= t * (t - 1) * (2*t + 5)
	}
	variance *= inflation(l.rest) / 18
	if variance <= 0 || s == 0 {
		return 1
	}
	return math.Erfc(math.Abs(s-sign(s)) / math.Sqrt(variance) / math.Sqrt2) // of both sides, with the correction for continuity
}

// step is a change: at the place where the ranks before and after it are furthest apart.
type step struct {
	at            int
	most          float64 // Pettitt's K
	before, after float64 // medians
	rest          []float64
	misfit        float64
}

func fitStep(x []float64) step {
	at, most := 1, 0.0
	ranks := ranksOf(x)
	sum := 0.0
	for t := 1; t < len(x); t++ {
		sum += ranks[t-1]
		if u := math.Abs(2*sum - float64(t)*float64(len(x)+1)); u > most {
			most, at = u, t
		}
	}
	s := stepAt(x, at)
	s.most = most
	return s
}

func stepAt(x []float64, at int) step {
	s := step{at: at}
	s.before, s.after = Median(x[:s.at]), Median(x[s.at:])
	for i, v := range x {
		of := s.before
		if i >= s.at {
			of = s.after
		}
		s.rest = append(s.rest, v-of)
	}
	s.misfit = misfit(s.rest, 0)
	return s
}

// pettitt is how probable ranks as far apart are where there is no change, by Pettitt's approximation, which is never too small for it.
func pettitt(x []float64, s step) float64 {
	n := float64(len(x))
	return min(1, 2*math.Exp(-6*s.most*s.most/((n*n*n+n*n)*inflation(s.rest))))
}

// inflation is how much greater the variance of a sum of the numbers is than of as many that have nothing to do with one another.
func inflation(rest []float64) float64 {
	n := float64(len(rest))
	phi := min(0.95, (n*autocorrelation(ranksOf(rest))+2)/(n-4)) // the estimate is that much too small, of a series without its trend
	return inflated(phi, n)
}

// inflated is how much greater it is with an autocorrelation of first order.
func inflated(phi, n float64) float64 {
	if phi <= 0 {
		return 1
	}
	sum, power := 0.0, 1.0
	for k := 1.0; k < n; k++ {
		power *= phi
		sum += (1 - k/n) * power
	}
	return 1 + 2*sum
}

// autocorrelation is that of neighbours; 0 where all are equal.
func autocorrelation(x []float64) float64 {
	if slices.Min(x) == slices.Max(x) {
		return 0
	}
	mean := 0.0
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	var with, all float64
	for i, v := range x {
		all += (v - mean) * (v - mean)
		if i > 0 {
			with += (v - mean) * (x[i-1] - mean)
		}
	}
	return with / all
}

// ranksOf gives each number its rank, and equal ones the mean of theirs.
func ranksOf(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(sign(x[a] - x[b])) })
	ranks := make([]float64, len(x))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			ranks[k] = float64(i+j+1) / 2
		}
		i = j
	}
	return ranks
}

// ties are how many numbers are equal, of each that is there more than once.
func ties(x []float64) (sizes []float64) {
	count := map[float64]float64{}
	for _, v := range x {
		count[v]++
	}
	for _, n := range count {
		if n > 1 {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

func misfit(x []float64, from float64) (sum float64) {
	for _, v := range x {
		sum += math.Abs(v - from)
	}
	return sum
}

// Median is that of a copy, and NaN of nothing.
func Median(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func sign(v float64) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}
