package load

import (
	"math/rand/v2"
	"sort"
	"testing"
	"time"
)

// What a ledger says of when a producer sent is never other than it was, exact as long as it sent little, and known to a second at most of whatever it sent.
func TestACourseIsTrue(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		mean := []time.Duration{200 * time.Microsecond, 3 * time.Millisecond, 100 * time.Millisecond, 5 * time.Second}[seed%4]
		c, now := &course{}, int64(time.Hour)
		sends := make([]int64, 100+r.IntN(20_000))
		noted := map[int64]uint64{}
		for n := range sends {
			now += 1 + int64(r.ExpFloat64()*float64(mean))
			if r.IntN(1000) == 0 {
				now += int64(10 * time.Second) // it pauses
			}
			sends[n] = now
			c.sent(now, uint64(n))
			if r.IntN(500) == 0 {
				c.note(now+1, uint64(n+1))
				noted[now+1] = uint64(n + 1)
			}
		}
		if len(c.marks) >= mostMarks && c.width < widest {
			t.Errorf("seed %d: %d marks of %v", seed, len(c.marks), time.Duration(c.width))
		}
		known := c.told(uint64(len(sends)))
		handedOut := func(at int64) (least, most uint64) {
			from, to := known.HandedOut(at, uint64(len(sends)))
			if n := uint64(sort.Search(len(sends), func(i int) bool { return sends[i] >= at })); n < from || n > to {
				t.Fatalf("seed %d: %d were sent, not %d to %d", seed, n, from, to)
			}
			return from, to
		}
		for range 2000 {
			at := sends[0] - int64(time.Second) + r.Int64N(now-sends[0]+2*int64(time.Second))
			least, most := handedOut(at)
			if len(sends) < mostMarks && least != most {
				t.Errorf("seed %d: of %d messages it is not known whether %d or %d had been sent", seed, len(sends), least, most)
			}
			if most > least && sends[most-1]-sends[least] > widest {
				t.Errorf("seed %d: what was sent is known to %v", seed, time.Duration(sends[most-1]-sends[least]))
			}
		}
		for at, want := range noted {
			if least, most := handedOut(at); least != want || most != want {
				t.Errorf("seed %d: %d to %d had been sent when it was noted that %d had", seed, least, most, want)
			}
		}
		if least, most := handedOut(now + 1); least != uint64(len(sends)) || most != least {
			t.Errorf("seed %d: right after the last of %d it is %d to %d", seed, len(sends), least, most)
		}
		if least, most := handedOut(sends[0]); least != 0 || most != 0 {
			t.Errorf("seed %d: right before the first it is %d to %d", seed, least, most)
		}
	}
}
