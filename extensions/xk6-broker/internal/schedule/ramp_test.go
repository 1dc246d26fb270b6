package schedule_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

func TestRamp(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		start  schedule.Rate
		stages []schedule.Stage
		want   []time.Duration
	}{
		"no stages":      {perSecond(10), nil, nil},
		"only jumps":     {perSecond(10), []schedule.Stage{{Target: perSecond(20)}, {Target: perSecond(5)}}, nil},
		"no rate":        {perSecond(0), []schedule.Stage{{Duration: time.Hour}}, nil},
		"less than one":  {perSecond(0), []schedule.Stage{{Target: perSecond(1), Duration: 2*time.Second - 1}}, nil},
		"one at the end": {perSecond(0), []schedule.Stage{{Target: perSecond(1), Duration: 2 * time.Second}}, []time.Duration{2 * time.Second}},
		"flat":           {perSecond(4), []schedule.Stage{{Target: perSecond(4), Duration: time.Second}}, []time.Duration{250 * ms, 500 * ms, 750 * ms, 1000 * ms}},
		"up":             {perSecond(0), []schedule.Stage{{Target: perSecond(8), Duration: time.Second}}, []time.Duration{500 * ms, 707_106_781, 866_025_403, 1000 * ms}},
		"down":           {perSecond(8), []schedule.Stage{{Duration: time.Second}}, []time.Duration{133_974_596, 292_893_218, 500 * ms, 1000 * ms}},
		"jump up": {
			perSecond(1),
			[]schedule.Stage{{Target: perSecond(1), Duration: time.Second}, {Target: perSecond(4)}, {Target: perSecond(4), Duration: 500 * ms}},
			[]time.Duration{1000 * ms, 1250 * ms, 1500 * ms},
		},
		"jump down to nothing": {perSecond(2), []schedule.Stage{{Target: perSecond(2), Duration: time.Second}, {}, {Duration: time.Hour}}, []time.Duration{500 * ms, 1000 * ms}},
		"silence between": {
			perSecond(2),
			[]schedule.Stage{{Target: perSecond(2), Duration: 750 * ms}, {}, {Duration: time.Minute}, {Target: perSecond(2)}, {Target: perSecond(2), Duration: 250 * ms}},
			[]time.Duration{500 * ms, 61 * time.Second},
		},
		"silence first": {
			perSecond(0),
			[]schedule.Stage{{Duration: time.Hour}, {Target: perSecond(8), Duration: time.Second}},
			[]time.Duration{time.Hour + 500*ms, time.Hour + 707_106_781, time.Hour + 866_025_403, time.Hour + 1000*ms},
		},
		"thirds add up": {
			schedule.Rate{Events: 1, Per: 3 * time.Second},
			slices.Repeat([]schedule.Stage{{Target: schedule.Rate{Events: 1, Per: 3 * time.Second}, Duration: time.Second}}, 6),
			[]time.Duration{3 * time.Second, 6 * time.Second},
		},
	} {
		s := schedule.Ramp(c.start, c.stages...)
		if got := all(t, s); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v: due at %v, want %v", name, s, got, c.want)
		}
		if n, ok := schedule.Count(s); !ok || n != uint64(len(c.want)) {
			t.Errorf("%s: Count(%v) is %d, %v", name, s, n, ok)
		}
	}
}

// A ramp that stays at one rate is the constant schedule without the arrival at 0, and with one at its end.
func TestFlatRampIsConstant(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(3, 1))
	for range 200 {
		rate := schedule.Rate{Events: 1 + source.Int64N(1e6), Per: time.Duration(1e6 + source.Int64N(1e12))}
		constant, flat := schedule.Constant(rate, 0), schedule.Ramp(rate, schedule.Stage{Target: rate, Duration: 1000 * time.Hour})
		last, _ := schedule.Count(flat)
		for range 50 {
			n := source.Uint64N(last + 1)
			got, ok := flat.At(n)
			want, _ := constant.At(n + 1)
			off := float64((got - want).Abs())
			if ok != (n < last) || ok && off > 1+1e-14*float64(want) {
				t.Fatalf("%v: arrival %d of %d is due at %v (%v), want %v", rate, n, last, got, ok, want)
			}
		}
	}
}

// integral is that of a ramp from 0 to t, in numbers without limit.
func integral(start schedule.Rate, stages []schedule.Stage, t time.Duration) *big.Rat {
	rat := func(r schedule.Rate) *big.Rat {
		if r.Events == 0 {
			return new(big.Rat)
		}
		return new(big.Rat).SetFrac64(r.Events, int64(r.Per))
	}
	sum, from := new(big.Rat), rat(start)
	for _, s := range stages {
		to := rat(s.Target)
		if s.Duration > 0 {
			x := min(t, s.Duration)
			// the mean of the rates at both ends, times the time between
			share := new(big.Rat).SetFrac64(int64(x), int64(s.Duration))
			at := new(big.Rat).Sub(to, from)
			at.Mul(at, share).Add(at, from)
			at.Add(at, from).Mul(at, new(big.Rat).SetFrac64(int64(x), 2))
			sum.Add(sum, at)
			if t -= x; t == 0 {
				break
			}
		}
		from = to
	}
	return sum
}

func TestRampIsExact(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(4, 1))
	for range 400 {
		unit := []time.Duration{time.Millisecond, time.Second, time.Minute, 7 * time.Second}[source.IntN(4)]
		rate := func() schedule.Rate {
			if source.IntN(3) == 0 {
				return schedule.Rate{}
			}
			r, err := schedule.NewRate(float64(1+source.Int64N(1<<source.Int64N(18)))/float64(1+source.IntN(9)), unit)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		start, stages, whole := rate(), []schedule.Stage{}, time.Duration(0)
		for range 1 + source.IntN(5) {
			s := schedule.Stage{Target: rate(), Duration: time.Duration(source.Int64N(1 << source.Int64N(50)))} // up to 13 days
			stages, whole = append(stages, s), whole+s.Duration
		}
		ramp := schedule.Ramp(start, stages...)
		count, _ := schedule.Count(ramp)
		if area := integral(start, stages, whole); new(big.Int).Quo(area.Num(), area.Denom()).Uint64() != count {
			t.Fatalf("%v has %d arrivals, but its integral is %v", ramp, count, area.FloatString(3))
		}
		numbers := []uint64{0, 1, 2}
		for i := range uint64(20) {
			numbers = append(numbers, count-1-i)
			if count > 0 {
				numbers = append(numbers, source.Uint64N(count))
			}
		}
		for _, n := range numbers {
			due, ok := ramp.At(n)
			if ok != (n < count) {
				t.Fatalf("%v: arrival %d of %d: %v", ramp, n, count, ok)
			}
			if !ok {
				continue
			}
			// After 10¹⁰ arrivals, floating point is off by 10⁻⁵ of the distance between two.
			goal := new(big.Rat).SetInt(new(big.Int).SetUint64(n + 1))
			off := new(big.Rat).Mul(goal, big.NewRat(1, 1e15))
			off.Add(off, big.NewRat(1, 1e6))
			if before := integral(start, stages, max(0, due-1)); before.Sub(before, off).Cmp(goal) > 0 {
				t.Fatalf("%v: arrival %d is due at %d ns, which is too late", ramp, n, due)
			}
			if after := integral(start, stages, due+2); after.Add(after, off).Cmp(goal) < 0 {
				t.Fatalf("%v: arrival %d is due at %d ns, which is too early", ramp, n, due)
			}
		}
	}
}

// Rates without a common denominator within 146 years are rounded, so little that nothing of it is seen.
func TestRampOfUnlikeRates(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(5, 1))
	for range 200 {
		var rates [3]schedule.Rate
		for i := range rates {
			var err error
			if rates[i], err = schedule.NewRate(source.Float64()*1000, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		stages := []schedule.Stage{{Target: rates[1], Duration: time.Minute}, {Target: rates[2], Duration: time.Hour}}
		ramp := schedule.Ramp(rates[0], stages...)
		count, _ := schedule.Count(ramp)
		for range 20 {
			n := source.Uint64N(count)
			due, _ := ramp.At(n)
			got, _ := integral(rates[0], stages, due).Float64()
			rate, _ := integral(rates[0], stages, due+1).Float64()
			if rate -= got; math.Abs(got-float64(n+1)) > 20*rate+1e-6 {
				t.Fatalf("%v: arrival %d is due at %v, when the integral is %v", ramp, n, due, got)
			}
		}
	}
}

// k6 is how k6's ramping-arrival-rate executor computes a stage in floating point: the time after its start when the integral is i,
// with rates per nanosecond.
func k6(from, to, dur, i float64) float64 {
	if from == to {
		return i / to
	}
	return (from*dur - math.Sqrt(dur*(from*from*dur+2*i*(to-from)))) / (from - to)
}

func TestRampAgreesWithK6(t *testing.T) {
	t.Parallel()
	stages := []schedule.Stage{
		{Target: perSecond(50), Duration: 30 * time.Second},
		{Target: perSecond(50), Duration: time.Minute},
		{Target: perSecond(500)},
		{Target: perSecond(1200), Duration: 45 * time.Second},
		{Target: perSecond(100), Duration: 20 * time.Second},
		{Duration: 10 * time.Second},
	}
	ramp := schedule.Ramp(perSecond(10), stages...)
	from, begin, done, n := 10e-9, 0.0, 0.0, uint64(0)
	for _, s := range stages {
		to, dur := s.Target.PerSecond()/1e9, float64(s.Duration)
		end := done + (from+to)/2*dur
		for ; float64(n+1) <= math.Round(end); n++ {
			i := float64(n+1) - done
			// At the very end of a stage that ends at no rate at all, the floating point of the formula cancels.
			if to == 0 && end-done-i < 1 {
				continue
			}
			due, ok := ramp.At(n)
			if want := begin + k6(from, to, dur, i); !ok || math.Abs(float64(due)-want) > 1.5 {
				t.Fatalf("arrival %d is due at %d ns (%v), by k6's formula at %.3f", n, due, ok, want)
			}
		}
		from, begin, done = to, begin+dur, end
	}
	if count, _ := schedule.Count(ramp); count != n {
		t.Errorf("%d arrivals, by k6's formula %d", count, n)
	}
}

func TestRampPanics(t *testing.T) {
	t.Parallel()
	panics(t, func() { schedule.Ramp(perSecond(-1)) })
	panics(t, func() { schedule.Ramp(perSecond(1), schedule.Stage{Duration: -1}) })
	panics(t, func() {
		schedule.Ramp(perSecond(1), schedule.Stage{Duration: math.MaxInt64}, schedule.Stage{Duration: 1})
	})
}
