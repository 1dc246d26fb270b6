package schedule

import (
	"fmt"
	"math/rand/v2"
	"time"
)

type poisson struct {
	base   Intensity
	seed   uint64
	source rand.PCG
	n      uint64 // the arrival that the cursor is at
	sum    mass   // Λ of its due time
}

// Poisson has arrivals that are independent of one another, at the rate that base has at each moment: a Poisson process, as many
// clients make it that know nothing of each other. Arrival n is due when the integral of the rate is the sum of n+1 independent
// exponentials of mean 1. Those depend on the seed alone, so two bases with one seed have the same process on two time
// scales. None is due at 0, but for rounding.
//
// The sum runs on from one call of At to the next: going forward costs the same for each arrival, asked for or skipped, and going
// backward begins again from arrival 0.
func Poisson(base Intensity, seed uint64) Schedule {
	p := &poisson{base: base, seed: seed}
	p.rewind()
	return p
}

// Even is s without chance: the schedule that the times of [Poisson] arrivals are drawn from, which has as many on the average. It is s
// itself where that is not random.
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
	for p.n < n && p.sum.less(total) {
		p.sum = p.sum.add(p.exponential())
		p.n++
	}
	if p.n < n {
		return 0, false
	}
	return p.base.invert(p.sum)
}

func (p *poisson) rewind() {
	// A source takes its seed as it is, and neighbouring seeds would begin with related numbers.
	p.source.Seed(scramble(p.seed), scramble(^p.seed))
	p.n, p.sum = 0, p.exponential()
}

// exponential draws from the exponential distribution of mean 1 by comparing uniform numbers only: John von Neumann, "Various
// techniques used in connection with random digits", 1951. Where a logarithm differs in its last bit from one processor to the
// next, comparisons do not. A run u₁ > u₂ > … begins with u and has an odd length with probability exp(-u).
func (p *poisson) exponential() mass {
	for whole := uint64(0); ; whole++ {
		first := p.source.Uint64()
		odd := true
		for last, next := first, p.source.Uint64(); next < last; odd = !odd {
			last, next = next, p.source.Uint64()
		}
		if odd {
			return mass{hi: whole, lo: first}
		}
	}
}

// scramble is a bijection of which every bit of the result depends on all bits of x: the finalizer of SplitMix64, Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", 2014.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (p *poisson) peak() float64 { return Peak(p.base) }

func (p *poisson) fork() Schedule { return Poisson(p.base, p.seed) }

func (p *poisson) String() string { return fmt.Sprintf("poisson, %v, seed %d", p.base, p.seed) }
