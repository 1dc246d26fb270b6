//gosec:disable G115 -- times and rates, which are not negative
package schedule

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

type constant struct {
	rate     Rate
	duration time.Duration
}

// Constant has an arrival due at n·Per/Events for every n from 0 for which that is before d. If d
// is 0 there is no end. It panics if the rate is not positive or d is negative; [Plan.Schedule]
// returns an error instead.
func Constant(r Rate, d time.Duration) Intensity {
	if err := r.positive(); err != nil {
		panic(fmt.Sprintf("schedule: Constant(%v): %v", r, err))
	}
	if d < 0 {
		panic(fmt.Sprintf("schedule: Constant for %v", d))
	}
	return &constant{rate: r, duration: d}
}

func (c *constant) At(n uint64) (time.Duration, bool) {
	hi, lo := bits.Mul64(n, uint64(c.rate.Per))
	if hi >= uint64(c.rate.Events) {
		return 0, false
	}
	due, _ := bits.Div64(hi, lo, uint64(c.rate.Events))
	return time.Duration(due), due <= forever && c.has(time.Duration(due))
}

// has reports whether a due time is before the end.
func (c *constant) has(due time.Duration) bool { return c.duration == 0 || due < c.duration }

func (c *constant) invert(m float64) (time.Duration, bool) {
	ns := m * float64(c.rate.Per) / float64(c.rate.Events)
	if ns >= forever {
		return 0, false
	}
	due := floor(ns)
	return due, c.has(due)
}

func (c *constant) count() (uint64, bool) {
	if c.duration == 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(c.duration), uint64(c.rate.Events))
	n, rest := bits.Div64(hi, lo, uint64(c.rate.Per)) // at most the duration, because Events <= Per
	if rest > 0 {
		n++
	}
	return n, true
}

func (c *constant) total() float64 {
	if n, ok := c.count(); ok {
		return float64(n)
	}
	return math.Inf(1)
}

func (c *constant) peak() float64 { return c.rate.PerSecond() }

func (c *constant) fork() Schedule { return c }
