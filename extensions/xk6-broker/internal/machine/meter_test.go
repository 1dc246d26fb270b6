package machine

import (
	"slices"
	"testing"
	"time"
)

// hiccups runs a meter whose sleeps take so long, and gives what it notes of all but the first, in descending order.
func hiccups(t *testing.T, sleeps ...time.Duration) []time.Duration {
	t.Helper()
	var now int64
	stop := make(chan struct{})
	m := newMeter(func() int64 { return now }, func(d time.Duration) {
		if d != time.Millisecond {
			t.Fatalf("it sleeps for %v", d)
		}
		now += int64(sleeps[0])
		if sleeps = sleeps[1:]; len(sleeps) == 0 {
			close(stop)
		}
	})
	m.run(stop)
	h := m.take()
	var all []time.Duration
	for v, n := range h.All() {
		for range n {
			all = append(all, time.Duration(v))
		}
	}
	if left := m.take().Count(); left != 0 || uint64(len(all)) != h.Count() {
		t.Errorf("%d values, of %d, and %d were left", len(all), h.Count(), left)
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// near tells whether values are those wanted, as exactly as a histogram holds them.
func near(got, want []time.Duration) bool {
	return slices.EqualFunc(got, want, func(g, w time.Duration) bool { return (g - w).Abs() <= w/1000 })
}

func TestAStandstillIsNotedForAllThatItDelayed(t *testing.T) {
	const best = time.Millisecond + 57*time.Microsecond
	want := make([]time.Duration, 0, 101)
	for ms := range 100 {
		want = append(want, time.Duration(100-ms)*time.Millisecond)
	}
	if got := hiccups(t, best, best+100*time.Millisecond, best); !near(got, append(want, 0)) {
		t.Errorf("a standstill of 100 ms is noted as %v", got)
	}
	us := time.Microsecond
	if got := hiccups(t, best, best+999*us, best+1999*us, best+2500*us); !near(got, []time.Duration{2500 * us, 1999 * us, 1500 * us, 999 * us}) {
		t.Errorf("%v", got)
	}
}

// What the platform's sleep takes at best is no hiccup, and the best may come late.
func TestTheLeastLatenessIsTheBaseline(t *testing.T) {
	us := time.Microsecond
	if got := hiccups(t, 1100*us, 1080*us, 1060*us, 1100*us, 1065*us); !near(got, []time.Duration{40 * us, 5 * us, 0, 0}) {
		t.Errorf("%v", got)
	}
}

// A process may stand still while the meter does not sleep, too.
func TestNoTimeIsLeftOut(t *testing.T) {
	var now int64
	m := newMeter(func() int64 { return now }, func(d time.Duration) { now += int64(d) })
	now += int64(50 * time.Millisecond)
	m.slept(m.once())
	if h := m.take(); h.Count() != 50 || h.Max() != int64(50*time.Millisecond) {
		t.Errorf("%d hiccups, at most %v", h.Count(), time.Duration(h.Max()))
	}
}
