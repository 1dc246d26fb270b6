package schedule

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"
)

// Share is which arrivals of a whole are one part's: start+at[0], start+at[1], … of every cycle. The zero one is the whole.
type Share struct {
	name  string
	start uint64
	at    []uint64 // from 0, increasing, less than cycle; nil is the whole
	cycle uint64
}

// Shard is the i-th of m shares, which together are the whole: arrivals i, i+m, i+2m, … It panics unless i < m.
func Shard(i, m uint64) Share {
	if i >= m {
		panic(fmt.Sprintf("pace: shard %d of %d", i, m))
	}
	if m == 1 {
		return Share{}
	}
	return Share{name: fmt.Sprintf("share %d of %d", i+1, m), start: i, at: []uint64{0}, cycle: m}
}

// Stripe has the arrivals start, start+offsets[0], start+offsets[0]+offsets[1], … with the offsets taken over and over: the share of one of
// k6's execution segments, as its striped offsets give it. It panics if start is negative, there are no offsets, or one is not positive.
func Stripe(start int64, offsets []int64) Share {
	if start < 0 || len(offsets) == 0 {
		panic(fmt.Sprintf("pace: stripe from %d by %v", start, offsets))
	}
	s := Share{start: uint64(start), at: make([]uint64, len(offsets))}
	shown := make([]string, len(offsets))
	for i, o := range offsets {
		if o <= 0 {
			panic(fmt.Sprintf("pace: stripe from %d by %v", start, offsets))
		}
		s.at[i] = s.cycle
		shown[i] = fmt.Sprint(s.start + s.cycle)
		s.cycle += uint64(o)
	}
	if start == 0 && s.cycle == uint64(len(offsets)) {
		return Share{}
	}
	s.name = fmt.Sprintf("arrivals %s of every %d", strings.Join(shown, ", "), s.cycle)
	return s
}

// Of is the share's part of a schedule. It does not share anything that changes with it, so that each share may be used by its own goroutine.
func (s Share) Of(whole Schedule) Schedule {
	whole = fork(whole)
	if s.at == nil {
		return whole
	}
	return &part{whole, s}
}

// Index is the number in the whole of the share's arrival n; the greatest number that there is where it is beyond.
func (s Share) Index(n uint64) uint64 {
	if s.at == nil {
		return n
	}
	length := uint64(len(s.at))
	hi, lo := bits.Mul64(n/length, s.cycle)
	lo, c1 := bits.Add64(lo, s.at[n%length], 0)
	lo, c2 := bits.Add64(lo, s.start, 0)
	if hi+c1+c2 > 0 {
		return math.MaxUint64
	}
	return lo
}

// Count is how many of the first so many arrivals of the whole are the share's.
func (s Share) Count(whole uint64) uint64 {
	if s.at == nil {
		return whole
	}
	if whole <= s.start {
		return 0
	}
	whole -= s.start
	n := whole / s.cycle * uint64(len(s.at))
	for _, at := range s.at {
		if at < whole%s.cycle {
			n++
		}
	}
	return n
}

// Fraction is how much of the whole it is, in the long run.
func (s Share) Fraction() float64 {
	if s.at == nil {
		return 1
	}
	return float64(len(s.at)) / float64(s.cycle)
}

// part is a share of a schedule.
type part struct {
	whole Schedule
	share Share
}

// fork gives a schedule that is not tied to s.
func fork(s Schedule) Schedule {
	if f, is := s.(interface{ fork() Schedule }); is {
		return f.fork()
	}
	return s
}

func (p *part) At(n uint64) (time.Duration, bool) {
	i := p.share.Index(n)
	if i == math.MaxUint64 {
		return 0, false
	}
	return p.whole.At(i)
}

func (p *part) count() (uint64, bool) {
	all, ok := Count(p.whole)
	if !ok {
		return 0, false
	}
	return p.share.Count(all), true
}

func (p *part) peak() float64 { return Peak(p.whole) * p.share.Fraction() }

func (p *part) fork() Schedule { return &part{fork(p.whole), p.share} }

func (p *part) String() string { return fmt.Sprintf("%v (%s)", p.whole, p.share.name) }
