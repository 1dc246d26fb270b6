package stationary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// seeds is how many series there are of each kind: few are enough to see that a test works, and many are needed to see its level.
func seeds() int {
	if testing.Short() {
		return 100
	}
	return 1000
}

// noise is a series of an autoregressive process of first order, φ = 0 being white noise, around a level of 10 deviations.
func noise(seed uint64, n int, phi float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 7))
	x := make([]float64, n)
	v := 0.0
	for i := -50; i < n; i++ {
		v = phi*v + math.Sqrt(1-phi*phi)*r.NormFloat64()
		if i >= 0 {
			x[i] = 10 + v
		}
	}
	return x
}

// skewed is noise with a long tail, as latencies have it.
func skewed(seed uint64, n int) []float64 {
	x := noise(seed, n, 0)
	for i, v := range x {
		x[i] = math.Exp(v - 10)
	}
	return x
}

// found is the share of the series that are not called stationary at the level.
func found(series func(seed uint64) []float64, level float64) float64 {
	count := 0
	for seed := range uint64(seeds()) {
		if _, ok := Test(series(seed), level); ok {
			count++
		}
	}
	return float64(count) / float64(seeds())
}

// Of white noise, each test finds as much as it says, and both together no more.
func TestNoiseIsStationary(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	for _, n := range []int{12, 30, 60, 150} {
		for name, series := range map[string]func(uint64) []float64{
			"normal": func(seed uint64) []float64 { return noise(seed, n, 0) },
			"skewed": func(seed uint64) []float64 { return skewed(seed, n) },
		} {
			trends, changes := 0, 0
			for seed := range uint64(seeds()) {
				x := series(seed)
				if mannKendall(x, fitLine(x)) < 0.05 {
					trends++
				}
				if pettitt(x, fitStep(x)) < 0.05 {
					changes++
				}
			}
			if trends < 20 || trends > 65 {
				t.Errorf("%s, %d: Mann and Kendall's test at 5 %% finds %d of %d", name, n, trends, seeds())
			}
			if changes > 65 || n >= 150 && changes < 20 { // of few numbers the approximation is too careful
				t.Errorf("%s, %d: Pettitt's test at 5 %% finds %d of %d", name, n, changes, seeds())
			}
			if share := found(series, 0.01); share > 0.015 {
				t.Errorf("%s, %d: both at 1 %% find %v", name, n, share)
			}
		}
	}
}

// Of a hundred series of white noise hardly one is called otherwise.
func TestNoiseIsSeldomCalledAChange(t *testing.T) {
	for _, n := range []int{12, 30, 60} {
		for name, series := range map[string]func(uint64) []float64{
			"normal": func(seed uint64) []float64 { return noise(seed, n, 0) },
			"skewed": func(seed uint64) []float64 { return skewed(seed, n) },
		} {
			if share := found(series, 0.01); share > 0.03 {
				t.Errorf("%s, %d: %v are found at 1 %%", name, n, share)
			}
		}
	}
}

// Of noise whose neighbours are alike, the correction leaves little more than the level: without it every third series would have a trend.
func TestNoiseWithAMemoryIsNearlyStationary(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	for _, c := range []struct {
		phi  float64
		n    int
		most float64
	}{{0.3, 20, 0.02}, {0.3, 60, 0.02}, {0.3, 150, 0.02}, {0.6, 20, 0.05}, {0.6, 60, 0.03}, {0.6, 150, 0.025}, {0.8, 60, 0.04}, {0.8, 150, 0.03}} {
		if share := found(func(seed uint64) []float64 { return noise(seed, c.n, c.phi) }, 0.01); share > c.most {
			t.Errorf("φ = %v, %d: %v are found, want %v at most", c.phi, c.n, share, c.most)
		}
	}
	uncorrected := 0
	for seed := range uint64(seeds()) {
		x := noise(seed, 60, 0.6)
		l := fitLine(x)
		l.rest = noise(seed, 60, 0) // as if the neighbours had nothing to do with one another
		if mannKendall(x, l) < 0.05 {
			uncorrected++
		}
	}
	if uncorrected < seeds()/5 {
		t.Errorf("without correction %d of %d have a trend: what is there to correct?", uncorrected, seeds())
	}
}

// Of 60 intervals a trend of 3 deviations over the window, and a change by 2 of them, are found 95 times of a hundred at least, and mostly told
// apart; of fewer it takes more.
func TestTrendsAndChangesAreFound(t *testing.T) {
	for _, c := range []struct {
		n    int
		kind Kind
		by   float64 // deviations
		at   float64 // the share of the window
	}{
		{30, Trend, 4, 0},
		{60, Trend, 3, 0},
		{60, Trend, -3, 0},
		{150, Trend, 2, 0},
		{40, Change, 3, 0.5},
		{60, Change, 2, 0.5},
		{60, Change, -2, 0.5},
		{60, Change, 2.5, 0.25},
		{150, Change, 1.5, 0.3},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			hits, named, kinds, sum := 0, 0, 0.0, 0.0
			for seed := range uint64(seeds()) {
				x := noise(seed, c.n, 0)
				at := int(c.at * float64(c.n))
				for i := range x {
					switch {
					case c.kind == Trend:
						x[i] += c.by * float64(i) / float64(c.n-1)
					case i >= at:
						x[i] += c.by
					}
				}
				f, ok := Test(x, 0.01)
				if !ok {
					continue
				}
				hits++
				if f.By*c.by < 0 {
					t.Errorf("it is said to have changed by %v, and did by %v", f.By, c.by/10)
				}
				if f.Kind == c.kind {
					kinds, sum = kinds+1, sum+f.By
				}
				if f.Kind == c.kind && (c.kind == Trend || math.Abs(float64(f.At-at)) <= float64(c.n)/10) {
					named++
				}
			}
			if by := sum / kinds; math.Abs(by-c.by/10) > 0.04 {
				t.Errorf("it is said to have changed by %v in the mean, and did by %v", by, c.by/10)
			}
			if hits < 95*seeds()/100 || named < hits*7/10 {
				t.Errorf("%d of %d are found, and %d called what they are", hits, seeds(), named)
			}
		})
	}
}

// A change that is plain to see is found in as few numbers as there must be, and among as many series as a study has columns; of a large one in the middle of
// twelve, ranks alone can never tell.
func TestPlainChangesAreFoundInFewNumbers(t *testing.T) {
	for _, c := range []struct {
		n         int
		noise, by float64 // of the logarithms, and so many times
		at        int
		least     float64
	}{
		{12, 0.02, 10, 6, 0.99},
		{12, 0.2, 10, 6, 0.95},
		{12, 0.02, 10, 3, 0.97},
		{12, 0.02, 0.1, 9, 0.97},
		{12, 0.2, 100, 6, 0.99},
		{12, 0.05, 2, 6, 0.98},
		{16, 0.1, 2, 8, 0.9},
		{18, 0.05, 1.5, 9, 0.98},
		{24, 0.1, 1.5, 12, 0.75},
	} {
		hits, places := 0, 0
		for seed := range uint64(seeds()) {
			x := noise(seed, c.n, 0)
			for i := range x {
				x[i] = math.Exp(c.noise * (x[i] - 10))
				if i >= c.at {
					x[i] *= c.by
				}
			}
			if f, ok := Test(x, 0.01/8); ok && f.By*(c.by-1) > 0 {
				hits++
				if f.Kind == Change && f.At == c.at {
					places++
				}
			}
		}
		if float64(hits) < c.least*float64(seeds()) || places < hits*9/10 {
			t.Errorf("%+v: %d of %d are found, %d where they are", c, hits, seeds(), places)
		}
	}
}

// Worsley's test finds no more than its part of the level in noise of whatever kind, be it of few numbers.
func TestNoiseHasNoPlainChange(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	const level = 0.01 / 8
	for _, n := range []int{12, 16, 24} {
		for name, of := range map[string]func(r *rand.Rand) float64{
			"normal":      func(r *rand.Rand) float64 { return math.Exp(0.1 * r.NormFloat64()) },
			"long tail":   func(r *rand.Rand) float64 { return math.Exp(2 * r.NormFloat64()) },
			"exponential": func(r *rand.Rand) float64 { return r.ExpFloat64() },
			"outliers":    func(r *rand.Rand) float64 { return (1 + 0.02*r.NormFloat64()) * (1 + 4*math.Floor(r.Float64()+0.1)) },
			"two modes":   func(r *rand.Rand) float64 { return (1 + 0.02*r.NormFloat64()) * (1 + 4*math.Floor(r.Float64()+0.4)) },
		} {
			count, random := 0, rand.New(rand.NewPCG(1, uint64(n)))
			const of8 = 2000 // times eight series
			for range of8 {
				for range 8 {
					x := make([]float64, n)
					for i := range x {
						x[i] = of(random)
					}
					if _, ok := Test(x, level); ok {
						count++
					}
				}
			}
			most := of8 / 100
			if name == "two modes" || name == "outliers" { // all of the one by chance after all of the other
				most = of8 * 4 / 100
			}
			if count > most {
				t.Errorf("%s, %d: %d of %d", name, n, count, of8)
			}
		}
	}
}

// The interval in which a queue grew is of neither side.
func TestAChangeThatTakesAnInterval(t *testing.T) {
	if f, ok := Test([]float64{2.6, 2.61, 2.6, 2.62, 2.6, 2.9, 20.5, 303.6, 303.3, 303.6, 303.6, 303.6, 303.4}, 0.01/8); !ok || f.Kind != Change || f.At < 6 || f.At > 7 {
		t.Errorf("%+v %v", f, ok)
	}
}

func TestStudent(t *testing.T) {
	for _, c := range []struct {
		t    float64
		free int
		p    float64
	}{{12.706, 1, 0.05}, {4.303, 2, 0.05}, {3.182, 3, 0.05}, {2.776, 4, 0.05}, {2.228, 10, 0.05}, {4.587, 10, 0.001}, {3.291, 100_000, 0.001}, {0, 5, 1}} {
		if p := student(c.t, c.free); math.Abs(p-c.p) > 0.002*c.p {
			t.Errorf("t=%v of %d: %v, want %v", c.t, c.free, p, c.p)
		}
	}
}

func TestWhatIsNotWorthAWordIsNotSaid(t *testing.T) {
	rising := func(n int, by float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = 100 + by*float64(i)/float64(n-1)
		}
		return x
	}
	for name, x := range map[string][]float64{"none": nil, "too few": rising(Least-1, 50), "a trifle": rising(100, 4), "all equal": rising(100, 0)} {
		if f, ok := Test(x, 0.01); ok {
			t.Errorf("%s: %+v", name, f)
		}
	}
	exact := make([]float64, 60)
	for i := range exact {
		exact[i] = float64(2000 - 500*(i/30))
	}
	if f, ok := Test(exact, 0.01); !ok || f.Kind != Change || f.At != 30 || f.By != -0.25 {
		t.Errorf("what falls by a quarter, without any noise: %+v, %v", f, ok)
	}
	if f, ok := Test(rising(100, 50), 0.01); !ok || f.Kind != Trend || math.Abs(f.By-0.5) > 0.01 {
		t.Errorf("what grows by half: %+v, %v", f, ok)
	}
}

// What grows by the same percentage each time has a straight line for its logarithms, whatever they are around, and grew by that percentage as often.
func TestLogarithms(t *testing.T) {
	var logs []float64
	for i := range 40 {
		logs = append(logs, float64(i)*math.Log(1.01)+0.01*float64(i%3)-2)
	}
	f, found := TestLog(logs, make([]int, len(logs)), 0.01)
	if want := math.Pow(1.01, 39) - 1; !found || f.Kind != Trend || math.Abs(f.By-want) > 0.03 {
		t.Errorf("%+v, want a trend by %.3g", f, want)
	}
}

func TestMedian(t *testing.T) {
	x := []float64{5, 1, 3, 2}
	if got := Median(x); got != 2.5 || x[0] != 5 {
		t.Errorf("of %v it is %v, want 2.5", x, got)
	}
	if got := Median(x[:3]); got != 3 {
		t.Errorf("of %v it is %v, want 3", x[:3], got)
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("of nothing it is %v", got)
	}
}
