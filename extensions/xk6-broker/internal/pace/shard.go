package pace

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// stripe takes the arrivals start+at[0], start+at[1], … of every cycle.
type stripe struct {
	whole Schedule
	name  string
	start uint64
	at    []uint64 // from 0, increasing, less than cycle
	cycle uint64
}

// Shard has the arrivals i, i+m, i+2m, … of s: one of m shares, which together are the whole. It does not share anything that
// changes with s, so that each share may be used by its own goroutine. It panics unless i < m.
func Shard(s Schedule, i, m uint64) Schedule {
	if i >= m {
		panic(fmt.Sprintf("pace: shard %d of %d", i, m))
	}
	return &stripe{whole: fork(s), name: fmt.Sprintf("share %d of %d", i+1, m), start: i, at: []uint64{0}, cycle: m}
}

// Stripe has the arrivals start, start+offsets[0], start+offsets[0]+offsets[1], … of s, with the offsets taken over and over:
// the share of one of k6's execution segments, as its striped offsets give it. Like [Shard] it does not share anything that
// changes with s. It panics if start is negative, there are no offsets, or one is not positive.
func Stripe(s Schedule, start int64, offsets []int64) Schedule {
	if start < 0 || len(offsets) == 0 {
		panic(fmt.Sprintf("pace: stripe from %d by %v", start, offsets))
	}
	t := &stripe{whole: fork(s), start: uint64(start), at: make([]uint64, len(offsets))}
	shown := make([]string, len(offsets))
	for i, o := range offsets {
		if o <= 0 {
			panic(fmt.Sprintf("pace: stripe from %d by %v", start, offsets))
		}
		t.at[i] = t.cycle
		shown[i] = fmt.Sprint(t.start + t.cycle)
		t.cycle += uint64(o)
	}
	t.name = fmt.Sprintf("arrivals %s of every %d", strings.Join(shown, ", "), t.cycle)
	return t
}

// fork gives a schedule that is not tied to s.
func fork(s Schedule) Schedule {
	if f, is := s.(interface{ fork() Schedule }); is {
		return f.fork()
	}
	return s
}

func (t *stripe) At(n uint64) (time.Duration, bool) {
	length := uint64(len(t.at))
	hi, lo := bits.Mul64(n/length, t.cycle)
	lo, c1 := bits.Add64(lo, t.at[n%length], 0)
	lo, c2 := bits.Add64(lo, t.start, 0)
	if hi+c1+c2 > 0 {
		return 0, false
	}
	return t.whole.At(lo)
}

func (t *stripe) count() (uint64, bool) {
	all, ok := Count(t.whole)
	if !ok {
		return 0, false
	}
	if all <= t.start {
		return 0, true
	}
	all -= t.start
	n := all / t.cycle * uint64(len(t.at))
	for _, at := range t.at {
		if at < all%t.cycle {
			n++
		}
	}
	return n, true
}

func (t *stripe) peak() float64 { return Peak(t.whole) * float64(len(t.at)) / float64(t.cycle) }

func (t *stripe) fork() Schedule {
	copied := *t
	copied.whole = fork(t.whole)
	return &copied
}

func (t *stripe) String() string { return fmt.Sprintf("%v (%s)", t.whole, t.name) }
