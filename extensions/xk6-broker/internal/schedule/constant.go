package schedule

import (
	"fmt"
	"math/bits"
	"time"
)

// constant has its rate as unsigned numbers, ready for 128-bit arithmetic.
type constant struct {
	rate        Rate
	duration    time.Duration
	events, per uint64
}

// Constant has an arrival due at n·Per/Events for every n from 0 for which that is before d, which makes d·Events/Per arrivals,
// rounded up; if d is 0 there is no end. It panics if the rate is not valid and positive or d is negative; [Plan.Schedule]
// gives an error instead.
//
// k6's constant-arrival-rate executor rounds the period instead of the due time: its schedule is
// Constant(Rate{1, unit/rate}, d), with unit/rate rounded down to whole nanoseconds.
func Constant(r Rate, d time.Duration) Intensity {
	if err := r.positive(); err != nil {
		panic(fmt.Sprintf("pace: Constant(%v): %v", r, err))
	}
	if d < 0 {
		panic(fmt.Sprintf("pace: Constant for %v", d))
	}
	return &constant{rate: r, duration: d, events: uint64(r.Events), per: uint64(r.Per)} //gosec:disable G115 -- a time or a rate, not negative
}

func (c *constant) At(n uint64) (time.Duration, bool) { return c.invert(mass{hi: n}) }

func (c *constant) invert(m mass) (time.Duration, bool) {
	hi, lo := bits.Mul64(m.hi, c.per)
	if hi >= c.events {
		return 0, false
	}
	due, rest := bits.Div64(hi, lo, c.events)
	if due > forever {
		return 0, false
	}
	if m.lo != 0 {
		// What is cut off here is less than 1 and rest is whole, so it does not matter to the whole quotient.
		part, _ := bits.Mul64(m.lo, c.per)
		due += (rest + part) / c.events
	}
	if due > forever || c.duration > 0 && due >= uint64(c.duration) {
		return 0, false
	}
	return time.Duration(due), true
}

func (c *constant) count() (uint64, bool) {
	if c.duration == 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(c.duration), c.events) //gosec:disable G115 -- a time or a rate, not negative
	n, rest := bits.Div64(hi, lo, c.per)               // at most the duration, since events are at most per
	if rest > 0 {
		n++
	}
	return n, true
}

func (c *constant) total() mass {
	if n, ok := c.count(); ok {
		return mass{hi: n}
	}
	return mass{hi: ^uint64(0)}
}

func (c *constant) peak() float64 { return c.rate.PerSecond() }

func (c *constant) String() string {
	if c.duration == 0 {
		return c.rate.String()
	}
	return fmt.Sprintf("%v for %v", c.rate, c.duration)
}
