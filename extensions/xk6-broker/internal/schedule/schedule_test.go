package schedule_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

func perSecond(n int64) schedule.Rate { return schedule.Rate{Events: n, Per: time.Second} }

// all collects the due times of a schedule that ends, and fails if they are not in order.
func all(t *testing.T, s schedule.Schedule) []time.Duration {
	t.Helper()
	var dues []time.Duration
	for n := uint64(0); ; n++ {
		due, ok := s.At(n)
		if !ok {
			break
		}
		if due < 0 || n > 0 && due < dues[n-1] {
			t.Fatalf("%v: arrival %d is due at %v, after one at %v", s, n, due, dues[max(n, 1)-1])
		}
		dues = append(dues, due)
	}
	for _, n := range []uint64{1, 2, 1000, 1 << 32, 1 << 63} {
		if due, ok := s.At(uint64(len(dues)) + n); ok {
			t.Errorf("%v: the last arrival is %d, but %d is due at %v", s, len(dues)-1, uint64(len(dues))+n, due)
		}
	}
	return dues
}

// schedules are some of each kind, all ending after a few thousand arrivals.
func schedules(t *testing.T) []schedule.Schedule {
	t.Helper()
	var lines strings.Builder
	source := rand.New(rand.NewPCG(1, 2))
	due := time.Duration(0)
	for range 3000 {
		due += time.Duration(source.Int64N(2)) * time.Duration(source.Int64N(5e6))
		fmt.Fprintln(&lines, due)
	}
	trace, err := schedule.Trace(strings.NewReader(lines.String()))
	if err != nil {
		t.Fatal(err)
	}
	constant := schedule.Constant(schedule.Rate{Events: 997, Per: 1009 * time.Millisecond}, 3*time.Second+1)
	ramp := schedule.Ramp(perSecond(0), schedule.Stage{Target: perSecond(700), Duration: 3 * time.Second},
		schedule.Stage{Duration: time.Second}, schedule.Stage{Duration: time.Second}, schedule.Stage{Target: perSecond(333)},
		schedule.Stage{Target: perSecond(333), Duration: 7 * time.Second})
	return []schedule.Schedule{constant, ramp, schedule.Poisson(constant, 3), schedule.Poisson(ramp, 4), trace}
}

func TestUntil(t *testing.T) {
	t.Parallel()
	for _, s := range schedules(t) {
		dues := all(t, s)
		times := []time.Duration{0, 1, time.Second, time.Hour}
		for i := 0; i < len(dues); i += 271 {
			times = append(times, dues[i]-1, dues[i], dues[i]+1)
		}
		for _, at := range times {
			want := sort.Search(len(dues), func(i int) bool { return dues[i] > at })
			if got := schedule.Until(s, at); got != uint64(want) {
				t.Errorf("%v: Until(%v) is %d, want %d", s, at, got, want)
			}
		}
	}
	if got := schedule.Until(schedule.Constant(perSecond(3), 0), time.Hour); got != 3*3600+1 {
		t.Errorf("an endless schedule has %d arrivals until 1h, want 10801", got)
	}
	if got := schedule.Until(schedule.Constant(schedule.Rate{Events: 1, Per: 1}, 0), math.MaxInt64); got != math.MaxInt64+1 {
		t.Errorf("one per nanosecond until the end of time is %d", got)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for _, s := range schedules(t) {
		n, ok := schedule.Count(s)
		if random := schedule.Even(s) != s; ok == random {
			t.Errorf("Count(%v) is known: %v", s, ok)
		}
		if want := len(all(t, s)); ok && n != uint64(want) {
			t.Errorf("Count(%v) is %d, but there are %d", s, n, want)
		}
	}
	if n, ok := schedule.Count(schedule.Constant(perSecond(1), 0)); ok {
		t.Errorf("an endless schedule has %d arrivals", n)
	}
}

func TestPeak(t *testing.T) {
	t.Parallel()
	jump := schedule.Ramp(perSecond(5), schedule.Stage{Target: perSecond(100)}, schedule.Stage{Target: perSecond(10), Duration: time.Second},
		schedule.Stage{Target: perSecond(1000)})
	trace, err := schedule.Trace(strings.NewReader("0\n0.5\n0.999999999\n1\n1.2\n1.4\n1.5\n9"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s    schedule.Schedule
		want float64
	}{
		{schedule.Constant(schedule.Rate{Events: 3, Per: 2 * time.Second}, 0), 1.5},
		{jump, 100},
		{schedule.Ramp(perSecond(0), schedule.Stage{Duration: time.Second}), 0},
		{schedule.Poisson(jump, 1), 100},
		{trace, 5}, // from 0.5 to 1.4, and from 0.999999999 to 1.5
		{schedule.Shard(1, 4).Of(jump), 25},
		{schedule.Stripe(1, []int64{1, 3, 1}).Of(jump), 60},
	} {
		if got := schedule.Peak(c.s); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("Peak(%v) is %v, want %v", c.s, got, c.want)
		}
	}
}

func TestAtDoesNotAllocate(t *testing.T) {
	for _, whole := range schedules(t) {
		for _, s := range []schedule.Schedule{whole, schedule.Shard(1, 3).Of(whole), schedule.Stripe(2, []int64{4, 3, 3}).Of(whole)} {
			n := uint64(0)
			if allocs := testing.AllocsPerRun(1000, func() { s.At(n % 700); n++ }); allocs != 0 {
				t.Errorf("%v: %v allocations per arrival", s, allocs)
			}
		}
	}
}

func Example() {
	plan := schedule.Plan{
		Stages: []schedule.Stage{
			{Target: schedule.Rate{Events: 2, Per: time.Second}, Duration: 2 * time.Second},
			{Target: schedule.Rate{Events: 2, Per: time.Second}, Duration: time.Second},
		},
	}
	s, err := plan.Schedule()
	if err != nil {
		fmt.Println(err)
		return
	}
	for n := uint64(0); ; n++ {
		due, ok := s.At(n)
		if !ok {
			break
		}
		fmt.Println(n, due)
	}
	// Output:
	// 0 1.414213562s
	// 1 2s
	// 2 2.5s
	// 3 3s
}
