package schedule_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

func TestConstant(t *testing.T) {
	t.Parallel()
	const never = time.Duration(-1)
	for _, c := range []struct {
		rate schedule.Rate
		d    time.Duration
		n    uint64
		want time.Duration
	}{
		{perSecond(2000), 0, 0, 0},
		{perSecond(2000), 0, 1, 500 * time.Microsecond},
		{schedule.Rate{Events: 1, Per: 3 * time.Second}, 0, 7, 21 * time.Second},
		{perSecond(30_000), 0, 1, 33_333},
		{perSecond(30_000), 0, 30_000, time.Second}, // a period of 33333 ns would be 10 µs early
		{perSecond(3), 0, 2, 666_666_666},
		{perSecond(300_000), 0, 1_000_000_000_001, 3_333_333*time.Second + 333_336_666}, // 10¹² and one more, 38 days on
		{perSecond(3), 0, 1_000_000_000_000, never},                                     // after 10,000 years
		{perSecond(200), 5 * time.Second, 999, 4995 * time.Millisecond},
		{perSecond(200), 5 * time.Second, 1000, never}, // what is due at the end is not due any more
		{perSecond(200), 5*time.Second + 1, 1000, 5 * time.Second},
		{perSecond(200), 1, 0, 0},
		{perSecond(200), 1, 1, never},
		{schedule.Rate{Events: 1, Per: 1}, 0, math.MaxInt64, math.MaxInt64},
		{schedule.Rate{Events: 1, Per: 1}, 0, math.MaxInt64 + 1, never},
		{schedule.Rate{Events: 1, Per: 1 << 62}, 0, 1, 1 << 62},
		{schedule.Rate{Events: 1, Per: 1 << 62}, 0, 2, never},
		{schedule.Rate{Events: 1, Per: 1 << 62}, 0, math.MaxUint64, never},
		{perSecond(2000), 0, math.MaxUint64, never},
	} {
		got, ok := schedule.Constant(c.rate, c.d).At(c.n)
		if !ok {
			got = never
		}
		if got != c.want {
			t.Errorf("%v for %v: arrival %d is due at %v, want %v", c.rate, c.d, c.n, got, c.want)
		}
	}
}

// TestConstantIsExact compares with n·Per/Events in numbers without limit, up to 10¹² arrivals and beyond.
func TestConstantIsExact(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		per := 1 + source.Int64N(1<<source.Int64N(62))
		rate := schedule.Rate{Events: 1 + source.Int64N(min(per, 1<<source.Int64N(62))), Per: time.Duration(per)}
		s := schedule.Constant(rate, 0)
		for _, base := range []uint64{0, 1e6, 1e12, 1 << 62, math.MaxUint64 - 2} {
			for n := base; n < base+3 && n >= base; n++ {
				due := new(big.Int).SetUint64(n)
				due.Mul(due, big.NewInt(per)).Quo(due, big.NewInt(rate.Events))
				got, ok := s.At(n)
				if ok != due.IsInt64() || ok && int64(got) != due.Int64() {
					t.Fatalf("%v: arrival %d is due at %d ns (%v), want %v", rate, n, got, ok, due)
				}
			}
		}
	}
}

func TestConstantCount(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(2, 1))
	for range 500 {
		rate := schedule.Rate{Events: 1 + source.Int64N(1000), Per: time.Duration(1000 + source.Int64N(1e9))}
		d := 1 + time.Duration(source.Int64N(int64(rate.Per)*2))
		s := schedule.Constant(rate, d)
		n, _ := schedule.Count(s)
		if dues := all(t, s); uint64(len(dues)) != n {
			t.Fatalf("%v: %d arrivals, but Count is %d", s, len(dues), n)
		}
		want := new(big.Rat).SetFrac64(rate.Events, int64(rate.Per))
		want.Mul(want, new(big.Rat).SetInt64(int64(d)))
		whole := new(big.Int).Quo(want.Num(), want.Denom())
		if !want.IsInt() {
			whole.Add(whole, big.NewInt(1))
		}
		if n != whole.Uint64() {
			t.Fatalf("%v: %d arrivals, want the integral %v rounded up", s, n, want)
		}
	}
}

func TestConstantPanics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate schedule.Rate
		d    time.Duration
	}{
		{schedule.Rate{}, 0},
		{schedule.Rate{Per: time.Second}, 0},
		{schedule.Rate{Events: 1}, 0},
		{perSecond(-1), 0},
		{perSecond(1e9 + 1), 0},
		{schedule.Rate{Events: 1, Per: 1<<62 + 1}, 0},
		{perSecond(1), -1},
	} {
		panics(t, func() { schedule.Constant(c.rate, c.d) })
	}
}

func panics(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}
