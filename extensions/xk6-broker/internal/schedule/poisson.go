package schedule

import (
	"math/rand/v2"
	"time"
)

type poisson struct {
	base   Intensity
	seed   uint64
	source rand.PCG
	n      uint64  // the arrival of the cursor
	sum    float64 // Λ of its due time
}

// Poisson has independent arrivals at the rate that base has at each moment. Arrival n is due when
// the integral of the rate is the sum of n+1 independent exponentials of mean 1, which depend on
// the seed alone. Going forward costs the same for each arrival; going backward begins at arrival
// 0.
func Poisson(base Intensity, seed uint64) Schedule {
	p := &poisson{base: base, seed: seed}
	p.rewind()
	return p
}

// Even returns the schedule without chance from which [Poisson] arrivals are drawn. It has as many
// on average. Another schedule is returned as it is.
func Even(s Schedule) Schedule {
	if p, is := s.(*poisson); is {
		return p.base
	}
	return s
}

func (p *poisson) At(n uint64) (time.Duration, bool) {
	if n < p.n {
		p.rewind()
	}
	total := p.base.total()
	for p.n < n && p.sum < total {
		p.sum += p.exponential()
		p.n++
	}
	if p.n < n {
		return 0, false
	}
	return p.base.invert(p.sum)
}

func (p *poisson) rewind() {
	// Neighbouring seeds would begin with related numbers.
	p.source.Seed(scramble(p.seed), scramble(^p.seed))
	p.n, p.sum = 0, p.exponential()
}

// exponential draws from the exponential distribution of mean 1 by comparing uniform numbers,
// because logarithms differ between processors: John von Neumann, "Various techniques used in
// connection with random digits", 1951. A run u₁ > u₂ > … begins with u and has an odd length with
// probability exp(-u).
func (p *poisson) exponential() float64 {
	for failures := 0.0; ; failures++ {
		first := p.source.Uint64()
		odd := true
		for last, next := first, p.source.Uint64(); next < last; odd = !odd {
			last, next = next, p.source.Uint64()
		}
		if odd {
			return failures + float64(first)*0x1p-64
		}
	}
}

// scramble spreads each bit of x over all bits: the finalizer of SplitMix64, Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", 2014.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (p *poisson) count() (uint64, bool) { return 0, false }

func (p *poisson) peak() float64 { return Peak(p.base) }

func (p *poisson) fork() Schedule { return Poisson(p.base, p.seed) }
