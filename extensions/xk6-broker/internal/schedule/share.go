//gosec:disable G115 -- numbers that are not negative
package schedule

import (
	"fmt"
	"math"
	"time"
)

// Share is the arrivals of one part: start+at[0], start+at[1], … of every cycle. The zero Share is
// the whole.
type Share struct {
	start uint64
	at    []uint64 // from 0, increasing, less than cycle; nil is the whole
	cycle uint64
}

// Shard returns the i-th of m shares: arrivals i, i+m, i+2m, … It panics unless i < m.
func Shard(i, m uint64) Share {
	if i >= m {
		panic(fmt.Sprintf("schedule: shard %d of %d", i, m))
	}
	return Stripe(int64(i), []int64{int64(m)})
}

// Stripe returns the arrivals start, start+offsets[0], start+offsets[0]+offsets[1], … with the
// offsets taken over and over, as the striped offsets of k6's execution segments are. It panics if
// start is negative, there are no offsets, or one is not positive.
func Stripe(start int64, offsets []int64) Share {
	s := Share{start: uint64(start), at: make([]uint64, len(offsets))}
	for i, o := range offsets {
		if o <= 0 {
			panic(fmt.Sprintf("schedule: stripe from %d by %v", start, offsets))
		}
		s.at[i] = s.cycle
		s.cycle += uint64(o)
	}
	if start < 0 || s.cycle == 0 {
		panic(fmt.Sprintf("schedule: stripe from %d by %v", start, offsets))
	}
	if start == 0 && s.cycle == uint64(len(offsets)) {
		return Share{}
	}
	return s
}

// Of returns the share's part of a schedule. It can be used by another goroutine than the schedule.
func (s Share) Of(all Schedule) Schedule {
	if s.at == nil {
		return all.fork()
	}
	return &part{all.fork(), s}
}

// Index returns the number in the whole of the share's arrival n, at most [math.MaxUint64].
func (s Share) Index(n uint64) uint64 {
	if s.at == nil {
		return n
	}
	length := uint64(len(s.at))
	if n/length >= (math.MaxUint64-s.start)/s.cycle {
		return math.MaxUint64
	}
	return s.start + n/length*s.cycle + s.at[n%length]
}

// Count returns the number of the share's arrivals among the first n of the whole.
func (s Share) Count(n uint64) uint64 {
	if s.at == nil {
		return n
	}
	if n <= s.start {
		return 0
	}
	n -= s.start
	count := n / s.cycle * uint64(len(s.at))
	for _, at := range s.at {
		if at < n%s.cycle {
			count++
		}
	}
	return count
}

// Fraction returns the share's part of the whole, 0 to 1.
func (s Share) Fraction() float64 {
	if s.at == nil {
		return 1
	}
	return float64(len(s.at)) / float64(s.cycle)
}

// part is a share of a schedule.
type part struct {
	all   Schedule
	share Share
}

func (p *part) At(n uint64) (time.Duration, bool) { return p.all.At(p.share.Index(n)) }

func (p *part) count() (uint64, bool) {
	n, ok := Count(p.all)
	return p.share.Count(n), ok
}

func (p *part) peak() float64 { return Peak(p.all) * p.share.Fraction() }

func (p *part) fork() Schedule { return &part{p.all.fork(), p.share} }
