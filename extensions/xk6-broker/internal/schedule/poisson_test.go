package schedule_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// The due times of one seed are part of what a report can be repeated with: they must never change.
func TestPoissonIsPinned(t *testing.T) {
	t.Parallel()
	s := schedule.Poisson(schedule.Constant(perSecond(1000), 0), 1)
	for n, want := range map[uint64]time.Duration{
		0: 206_116, 1: 1_758_423, 2: 1_802_245, 3: 2_515_494, 4: 3_131_966, 5: 4_046_141, 6: 4_517_582, 7: 5_226_198,
		1_000_000: 999_828_935_824,
	} {
		if due, ok := s.At(n); !ok || due != want {
			t.Errorf("arrival %d is due at %d ns (%v), want %d", n, due, ok, want)
		}
	}
}

func TestPoissonGoesBackAndForth(t *testing.T) {
	t.Parallel()
	base := schedule.Ramp(perSecond(0), schedule.Stage{Target: perSecond(1000), Duration: 10 * time.Second})
	dues := all(t, schedule.Poisson(base, 9))
	s := schedule.Poisson(base, 9)
	source := rand.New(rand.NewPCG(6, 1))
	for range 1000 {
		n := source.Uint64N(uint64(len(dues)) + 10)
		due, ok := s.At(n)
		if ok != (n < uint64(len(dues))) || ok && due != dues[n] {
			t.Fatalf("arrival %d is due at %v (%v) when asked for out of turn", n, due, ok)
		}
	}
}

// gaps of a process whose rate is so low that nothing of an exponential is rounded away: one arrival in 2⁴⁰ ns.
func gaps(t *testing.T, seed uint64, n int) []float64 {
	t.Helper()
	s := schedule.Poisson(schedule.Constant(schedule.Rate{Events: 1, Per: 1 << 40}, 0), seed)
	gaps, last := make([]float64, n), time.Duration(0)
	for i := range gaps {
		due, ok := s.At(uint64(i))
		if !ok {
			t.Fatalf("seed %d: no arrival %d", seed, i)
		}
		gaps[i] = float64(due-last) / (1 << 40)
		last = due
	}
	return gaps
}

// TestPoissonGapsAreExponential holds the moments, the distribution and the independence of gaps against theory, with bounds that one
// right generator in ten thousand would not keep. The seeds are fixed, so that it is one and the same every time.
func TestPoissonGapsAreExponential(t *testing.T) {
	t.Parallel()
	const seeds, each = 200, 5000
	const n = seeds * each
	var sum, squares, neighbours, seedwise, ks float64
	var before []float64
	for seed := range uint64(seeds) {
		g := gaps(t, seed, each)
		for i, x := range g {
			sum += x
			squares += (x - 1) * (x - 1)
			if i > 0 {
				neighbours += (x - 1) * (g[i-1] - 1)
			}
			if before != nil {
				seedwise += (x - 1) * (before[i] - 1)
			}
		}
		before = slices.Clone(g)
		slices.Sort(g)
		d := 0.0
		for i, x := range g {
			p := -math.Expm1(-x)
			d = max(d, p-float64(i)/each, float64(i+1)/each-p)
		}
		d *= math.Sqrt(each)
		if d > 2.7 { // probability 9e-7 each
			t.Errorf("seed %d: Kolmogorov-Smirnov statistic %.3f", seed, d)
		}
		ks += d
	}
	for _, c := range []struct {
		what               string
		got, want, deviate float64
	}{
		{"mean", sum / n, 1, 1 / math.Sqrt(n)},
		{"variance", squares / n, 1, math.Sqrt(8.0 / n)}, // the fourth central moment is 9
		{"correlation of neighbours", neighbours / n, 0, 1 / math.Sqrt(n)},
		{"correlation of neighbouring seeds", seedwise / n, 0, 1 / math.Sqrt(n)},
		{"mean Kolmogorov-Smirnov statistic", ks / seeds, math.Sqrt(math.Pi/2) * math.Ln2, 0.2603 / math.Sqrt(seeds)},
	} {
		t.Logf("%s: %.5f, %+.2f standard deviations off", c.what, c.got, (c.got-c.want)/c.deviate)
		if math.Abs(c.got-c.want) > 4*c.deviate {
			t.Errorf("%s is %v, want %v ± %v", c.what, c.got, c.want, c.deviate)
		}
	}
}

// chi2 is Pearson's statistic, turned into a normal deviate by Wilson and Hilferty.
func chi2(got, want []float64) float64 {
	sum, k := 0.0, float64(len(got))
	for i := range got {
		sum += (got[i] - want[i]) * (got[i] - want[i]) / want[i]
	}
	return (math.Cbrt(sum/k) - (1 - 2/(9*k))) / math.Sqrt(2/(9*k))
}

// TestPoissonFollowsItsRate counts arrivals in slots of time: they must be as many as the integral over a slot says, on the average and
// with the scatter of a Poisson distribution, neither more nor less.
func TestPoissonFollowsItsRate(t *testing.T) {
	t.Parallel()
	start := perSecond(20)
	stages := []schedule.Stage{
		{Target: perSecond(300), Duration: 10 * time.Second},
		{Target: perSecond(300), Duration: 5 * time.Second},
		{Target: perSecond(50)},
		{Target: perSecond(100), Duration: 5 * time.Second},
		{Duration: 5 * time.Second},
	}
	ramp := schedule.Ramp(start, stages...)
	const slots, seeds = 50, 100
	var want [slots]float64
	for i := range want {
		slot := new(big.Rat).Sub(integral(start, stages, time.Duration(i+1)*time.Second/2), integral(start, stages, time.Duration(i)*time.Second/2))
		want[i], _ = slot.Float64()
	}
	var got, wanted []float64
	total := make([]float64, slots)
	for seed := range uint64(seeds) {
		var counts [slots]float64
		for _, due := range all(t, schedule.Poisson(ramp, seed)) {
			counts[(due-1)*2/time.Second]++
		}
		got, wanted = append(got, counts[:]...), append(wanted, want[:]...)
		for i, c := range counts {
			total[i] += c / seeds
		}
	}
	if z := chi2(got, wanted); math.Abs(z) > 4 {
		t.Errorf("counts in single slots scatter %+.2f standard deviations more than a Poisson distribution", z)
	}
	for i := range total {
		if math.Abs(total[i]-want[i]) > 4.5*math.Sqrt(want[i]/seeds) {
			t.Errorf("slot %d has %v arrivals on the average, want %v", i, total[i], want[i])
		}
	}
}

// One seed is one process, whatever the time scale: an arrival is due when the integral of the rate has the same value.
func TestPoissonIsTimeChanged(t *testing.T) {
	t.Parallel()
	start, stages := perSecond(0), []schedule.Stage{{Target: perSecond(500), Duration: 10 * time.Second}, {Duration: 10 * time.Second}}
	ramped := all(t, schedule.Poisson(schedule.Ramp(start, stages...), 5))
	unit := schedule.Poisson(schedule.Constant(schedule.Rate{Events: 1, Per: 1 << 40}, 0), 5)
	double := schedule.Poisson(schedule.Constant(schedule.Rate{Events: 2, Per: 1 << 40}, 0), 5)
	for n, due := range ramped {
		one, _ := unit.At(uint64(n))
		if half, _ := double.At(uint64(n)); half != one/2 {
			t.Fatalf("arrival %d is due at %d ns, and at %d ns at twice the rate", n, one, half)
		}
		mass := new(big.Rat).SetFrac64(int64(one), 1<<40)
		next := new(big.Rat).SetFrac64(int64(one+1), 1<<40)
		if integral(start, stages, due).Cmp(next) > 0 || integral(start, stages, due+1).Cmp(mass) < 0 {
			t.Fatalf("arrival %d is due at %v on the ramp, where the integral is not %s", n, due, mass.FloatString(9))
		}
	}
	// The process without end has its next arrival past the end of the ramp.
	if next, _ := unit.At(uint64(len(ramped))); float64(next)/(1<<40) < 5000 {
		t.Errorf("the ramp has %d arrivals, but one more is due when the integral is %v of 5000", len(ramped), float64(next)/(1<<40))
	}
}

func TestPoissonEndsWithItsBase(t *testing.T) {
	t.Parallel()
	endless := schedule.Poisson(schedule.Constant(perSecond(777), 0), 8)
	for _, d := range []time.Duration{1, time.Millisecond, 10 * time.Second} {
		dues := all(t, schedule.Poisson(schedule.Constant(perSecond(777), d), 8))
		want := sort.Search(1e6, func(n int) bool { due, _ := endless.At(uint64(n)); return due >= d })
		if len(dues) != want {
			t.Errorf("%d arrivals within %v, want %d", len(dues), d, want)
		}
	}
	if dues := all(t, schedule.Poisson(schedule.Ramp(perSecond(0), schedule.Stage{Duration: time.Hour}), 1)); len(dues) != 0 {
		t.Errorf("arrivals at %v, with a rate of 0", dues)
	}
}

func TestEvenIsWithoutChance(t *testing.T) {
	t.Parallel()
	base := schedule.Constant(perSecond(777), time.Second)
	for _, s := range []schedule.Schedule{base, schedule.Poisson(base, 8)} {
		if n, ok := schedule.Count(schedule.Even(s)); n != 777 || !ok {
			t.Errorf("%v: %d arrivals, %v", s, n, ok)
		}
	}
}

// The process goes on past the last time that can be told.
func TestPoissonAtTheEndOfTime(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		s := schedule.Poisson(schedule.Constant(schedule.Rate{Events: 1, Per: 1<<62 - 1}, 0), seed)
		last, over := time.Duration(0), false
		for n := range uint64(30) {
			due, ok := s.At(n)
			if ok && (over || due < last) {
				t.Fatalf("seed %d: arrival %d is due at %d ns, after one at %d ns (%v)", seed, n, due, last, over)
			}
			last, over = due, !ok
		}
		if !over {
			t.Errorf("seed %d: 30 arrivals within 292 years, at one in 146", seed)
		}
	}
}
