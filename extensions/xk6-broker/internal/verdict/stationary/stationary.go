// Package stationary reports whether a series of numbers has a trend.
package stationary

import (
	"fmt"
	"math"
	"slices"
)

const (
	// Least is the least length of a series.
	Least = 12
	// relevant is the least change that is reported, as a share of the first value of the trend.
	relevant = 0.05
)

// Trend is a change of a series from its beginning to its end.
type Trend struct {
	P  float64 // the probability of such a series without a trend
	By float64 // the change by Sen's slope, as a share of the value at the beginning
}

// String names the test and its result.
func (t Trend) String() string { return fmt.Sprintf("Mann-Kendall test, p=%.2g", max(t.P, 1e-15)) }

// Test looks for a trend with the test of Mann and Kendall, and measures it with the slope of Theil
// and Sen. It returns false if there is none at the level, if the change is small, or if the series
// is too short.
func Test(x []float64, level float64) (Trend, bool) {
	if len(x) < Least {
		return Trend{}, false
	}
	t := Trend{P: mannKendall(x), By: growth(x)}
	return t, t.P < level && math.Abs(t.By) >= relevant
}

// mannKendall returns the two-sided probability of as many ascending or descending pairs.
func mannKendall(x []float64) float64 {
	n, s := float64(len(x)), 0
	ties := map[float64]float64{}
	for i, a := range x {
		ties[a]++
		for _, b := range x[i+1:] {
			switch {
			case b > a:
				s++
			case b < a:
				s--
			}
		}
	}
	variance := n * (n - 1) * (2*n + 5)
	for _, t := range ties {
		variance -= t * (t - 1) * (2*t + 5)
	}
	if s == 0 || variance <= 0 {
		return 1
	}
	z := (math.Abs(float64(s)) - 1) / math.Sqrt(variance/18) // with the correction for continuity
	return math.Erfc(z / math.Sqrt2)
}

// growth returns the change along the line of Theil and Sen.
func growth(x []float64) float64 {
	slopes := make([]float64, 0, len(x)*(len(x)-1)/2)
	for i := range x {
		for k := i + 1; k < len(x); k++ {
			slopes = append(slopes, (x[k]-x[i])/float64(k-i))
		}
	}
	slope := Median(slopes)
	flat := make([]float64, len(x))
	for i, v := range x {
		flat[i] = v - slope*float64(i)
	}
	change, first := slope*float64(len(x)-1), Median(flat)
	if first <= 0 {
		return math.Copysign(1, change)
	}
	return change / first
}

// Median returns the median, or NaN of nothing.
func Median(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
