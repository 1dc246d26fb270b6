package payload

import "slices"

// Sizes chooses the size of a body in bytes.
type Sizes interface {
	choose(n, random uint64) int
	Least() int
	Mean() float64
	most() int
}

// Fixed is one size for all bodies.
type Fixed int

func (f Fixed) choose(uint64, uint64) int { return int(f) }

// Least returns the size.
func (f Fixed) Least() int { return int(f) }

// Mean returns the size.
func (f Fixed) Mean() float64 { return float64(f) }
func (f Fixed) most() int     { return int(f) }

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

type mixed struct {
	bounds
	sizes []int
	mean  float64
	by    *weighted
}

// Mixed returns some sizes, each with a weight.
func Mixed(sizes []int, weights []float64) Sizes {
	m := mixed{bounds: bounds{slices.Min(sizes), slices.Max(sizes)}, sizes: sizes, by: newWeighted(weights)}
	sum := 0.0
	for i, weight := range weights {
		sum += weight
		m.mean += float64(sizes[i]) * weight
	}
	m.mean /= sum
	return m
}

func (m mixed) choose(_, random uint64) int { return m.sizes[m.by.choose(random)] }
func (m mixed) Mean() float64               { return m.mean }

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
