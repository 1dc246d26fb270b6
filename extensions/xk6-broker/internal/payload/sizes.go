package payload

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Sizes chooses the size of a body in bytes.
type Sizes interface {
	choose(n, random uint64) int
	Least() int
	Mean() float64
	most() int
	fmt.Stringer
}

// Fixed is one size for all bodies.
type Fixed int

func (f Fixed) choose(uint64, uint64) int { return int(f) }

// Least returns the size.
func (f Fixed) Least() int { return int(f) }

// Mean returns the size.
func (f Fixed) Mean() float64  { return float64(f) }
func (f Fixed) most() int      { return int(f) }
func (f Fixed) String() string { return fmt.Sprint(int(f)) }

// bounds are the least and the greatest size.
type bounds struct{ min, max int }

// Least returns the least size.
func (b bounds) Least() int { return b.min }
func (b bounds) most() int  { return b.max }

type uniform struct{ bounds }

// Uniform returns all sizes from least to most, equally likely.
func Uniform(least, most int) Sizes { return uniform{bounds{least, most}} }

func (u uniform) choose(_, random uint64) int { return u.min + below(random, u.max-u.min+1) }
func (u uniform) Mean() float64               { return float64(u.min+u.max) / 2 }
func (u uniform) String() string              { return fmt.Sprintf("uniform from %d to %d", u.min, u.max) }

// normal is a truncated distribution: values beyond the bounds are not drawn.
type normal struct {
	bounds
	mean, deviation float64
	side            float64 // 1, or -1 to count from above
	from, to        float64 // of the distribution function at the bounds
}

// Normal returns sizes around a mean, within bounds.
func Normal(mean, deviation float64, least, most int) Sizes {
	n := normal{bounds: bounds{least, most}, mean: mean, deviation: deviation, side: 1}
	if float64(least) > mean { // floating point is precise near 0 and not near 1, and both tails are alike
		n.side = -1
	}
	n.from, n.to = n.function(float64(least)-0.5), n.function(float64(most)+0.5)
	return n
}

func (n normal) function(x float64) float64 {
	return math.Erfc(n.side*(n.mean-x)/(n.deviation*math.Sqrt2)) / 2
}

func (n normal) choose(_, random uint64) int {
	p := n.from + unit(random)*(n.to-n.from)
	x := n.mean - n.side*n.deviation*math.Sqrt2*math.Erfcinv(2*p)
	return max(n.min, min(n.max, int(math.Round(x))))
}

// Mean returns the mean of the truncated distribution.
func (n normal) Mean() float64 {
	density := func(x float64) float64 {
		z := (x - n.mean) / n.deviation
		return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
	}
	return n.mean + n.deviation*(density(float64(n.min)-0.5)-density(float64(n.max)+0.5))/math.Abs(n.to-n.from)
}

func (n normal) String() string {
	return fmt.Sprintf("normal around %g, deviation %g, from %d to %d", n.mean, n.deviation, n.min, n.max)
}

type mixed struct {
	bounds
	sizes []int
	mean  float64
	by    *weighted
	shown string
}

// Mixed returns some sizes, each with a weight.
func Mixed(sizes []int, weights []float64) Sizes {
	m := mixed{bounds: bounds{slices.Min(sizes), slices.Max(sizes)}, sizes: sizes, by: newWeighted(weights)}
	all := make([]string, len(sizes))
	sum := 0.0
	for i, weight := range weights {
		sum += weight
		m.mean += float64(sizes[i]) * weight
		all[i] = fmt.Sprintf("%d (%g)", sizes[i], weight)
	}
	m.mean /= sum
	m.shown = strings.Join(all, ", ")
	return m
}

func (m mixed) choose(_, random uint64) int { return m.sizes[m.by.choose(random)] }
func (m mixed) Mean() float64               { return m.mean }
func (m mixed) String() string              { return m.shown }

type recorded struct {
	bounds
	sizes []int32
	mean  float64
}

// Recorded returns the sizes of a trace, one after the other, repeatedly.
func Recorded(sizes []int32) Sizes {
	sum := 0.0
	for _, size := range sizes {
		sum += float64(size)
	}
	return recorded{bounds{int(slices.Min(sizes)), int(slices.Max(sizes))}, sizes, sum / float64(len(sizes))}
}

func (r recorded) choose(n, _ uint64) int { return int(r.sizes[n%uint64(len(r.sizes))]) }
func (r recorded) Mean() float64          { return r.mean }
func (r recorded) String() string         { return "of the trace" }
