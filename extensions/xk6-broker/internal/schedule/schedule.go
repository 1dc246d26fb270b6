// Package schedule computes when message n is due.
//
// A [Schedule] is a pure function from the number of an arrival, counted from 0, to its due time
// after the start. Every due time is computed from the number, so that no error adds up. Equal
// arguments give equal due times on any machine: processes take a [Share] each and together have
// the whole.
//
// With λ(t) the rate and Λ(t) its integral, the number of arrivals expected until t:
//
//	Constant   arrival n is due at Λ⁻¹(n)       the first at 0
//	Ramp       arrival n is due at Λ⁻¹(n+1)     the first when the integral reaches 1
//	Poisson    arrival n is due at Λ⁻¹(E₀+…+Eₙ) with independent unit exponentials E
//
// A [Trace] lists its due times. Due times are rounded down to whole nanoseconds, of a trace to the
// nearest.
package schedule

import (
	"math"
	"time"
)

// Schedule is a sequence of due times. It is for one goroutine; [Share.Of] makes one for another.
type Schedule interface {
	// At returns the time since the start at which arrival n is due, and false after the last one.
	// Due times never decrease with n. At does not allocate.
	At(n uint64) (due time.Duration, ok bool)

	count() (n uint64, ok bool)
	peak() float64
	fork() Schedule
}

// Intensity is a [Schedule] with a rate at every moment, from which [Poisson] arrivals are drawn.
type Intensity interface {
	Schedule
	// invert returns Λ⁻¹(m), rounded down, and false if Λ never reaches m.
	invert(m float64) (time.Duration, bool)
	// total returns a number that is no less than any m for which invert is true.
	total() float64
}

// forever is the first due time in nanoseconds that is too great.
const forever = math.MaxInt64

// floor rounds a time in nanoseconds down. It absorbs the error of a few floating point operations,
// so that a time that is exactly whole stays so.
func floor(ns float64) time.Duration { return time.Duration(ns + ns*0x1p-48) }

// Count returns the number of arrivals. It is false if there is no end, and for [Poisson].
func Count(s Schedule) (n uint64, ok bool) { return s.count() }

// Peak returns the greatest rate at any time, in arrivals per second: for [Poisson] the expected
// one, for a [Trace] the most arrivals in any one second.
func Peak(s Schedule) float64 { return s.peak() }

// Until returns the number of arrivals that are due at t or before.
func Until(s Schedule, t time.Duration) uint64 {
	due := func(n uint64) bool {
		at, ok := s.At(n)
		return ok && at <= t
	}
	if !due(0) {
		return 0
	}
	low, high := uint64(0), uint64(1) // low is due
	for due(high) {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; due(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
