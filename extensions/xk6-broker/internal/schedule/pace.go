// Package pace says when message n is due.
//
// A [Schedule] is a pure function from the number of an arrival, counted from 0, to its due time after the start. It never
// looks at a clock, and it never adds up rounded gaps: every due time is computed from the arrival's number, in whole
// numbers, and is exact to the nanosecond however long the run. Equal arguments give equal due times on any machine, so
// that several processes may each take their share of one schedule ([Share]) and together have the whole.
//
// [Constant] and [Ramp] are rates over time. With λ(t) the rate and Λ(t) its integral, the number of arrivals expected until
// t, they differ in where they begin to count, as k6's executors do:
//
//	Constant   arrival n is due at Λ⁻¹(n)       the first at 0
//	Ramp       arrival n is due at Λ⁻¹(n+1)     the first when the integral reaches 1
//	Poisson    arrival n is due at Λ⁻¹(E₀+…+Eₙ) with independent unit exponentials E, for the Λ of either
//
// A [Trace] lists its due times. Due times are rounded down to whole nanoseconds, those of a trace to the nearest.
package schedule

import (
	"math"
	"time"
)

// Schedule tells when arrivals are due.
//
// A Schedule is for one goroutine: that of [Poisson] remembers where it is. Others take a Schedule of their own, made from
// the same arguments or by [Share.Of].
type Schedule interface {
	// At is when arrival n, counted from 0, is due, as the time since the start. ok is false past the last arrival. Due
	// times never decrease with n. At does not allocate.
	At(n uint64) (due time.Duration, ok bool)
	// String describes the schedule in a few words, for a report.
	String() string
}

// Intensity is a [Schedule] that has a rate at every moment, as [Constant] and [Ramp] do, so that the time of [Poisson]
// arrivals can be drawn from it.
type Intensity interface {
	Schedule
	// invert is Λ⁻¹(m), rounded down, and false where Λ never reaches m.
	invert(m mass) (time.Duration, bool)
	// total is no less than any m for which invert is true.
	total() mass
}

// forever is past the last due time that a [time.Duration] can hold.
const forever = math.MaxInt64

// Count is how many arrivals s has. ok is false where there is no end, and where only drawing every arrival would tell, as
// with [Poisson].
func Count(s Schedule) (n uint64, ok bool) {
	if c, is := s.(interface{ count() (uint64, bool) }); is {
		return c.count()
	}
	return 0, false
}

// Peak is the greatest rate that s has at any time, in arrivals per second. Of [Poisson] it is the greatest rate that
// arrivals are drawn from, and of a [Trace] the most arrivals in any one second. It is 0 where s has no arrivals, and
// where s is not of this package.
func Peak(s Schedule) float64 {
	if p, is := s.(interface{ peak() float64 }); is {
		return p.peak()
	}
	return 0
}

// Until is how many arrivals of s are due at t or before; the latest of them is number Until-1. It asks for about 2·log₂ of
// that number of due times, back and forth, which is fast for all but [Poisson].
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
		low = high
		if high > math.MaxUint64/2 {
			high = math.MaxUint64
			break
		}
		high *= 2
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
