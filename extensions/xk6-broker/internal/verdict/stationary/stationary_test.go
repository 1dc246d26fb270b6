package stationary

import (
	"math"
	"math/rand/v2"
	"testing"
)

const seeds = 100

// noise returns white noise around 10 with a trend of a number of deviations over the series.
func noise(seed uint64, n int, trend float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 7))
	x := make([]float64, n)
	for i := range x {
		x[i] = 10 + r.NormFloat64() + trend*float64(i)/float64(n)
	}
	return x
}

func found(t *testing.T, n int, trend, level float64) (count int) {
	t.Helper()
	for seed := range uint64(seeds) {
		f, ok := Test(noise(seed, n, trend), level)
		if ok && trend != 0 && (f.By > 0) != (trend > 0) {
			t.Errorf("seed %d: a trend of %v has the change %v", seed, trend, f.By)
		}
		if ok {
			count++
		}
	}
	return count
}

func TestTest_Noise_SeldomFound(t *testing.T) {
	for _, n := range []int{12, 30, 150} {
		if count := found(t, n, 0, 0.01); count > 4 {
			t.Errorf("%d numbers: %d of %d at 1 %%", n, count, seeds)
		}
	}
}

func TestTest_Trend_Found(t *testing.T) {
	for n, trend := range map[int]float64{30: 4, 60: 3, 150: -3} {
		if count := found(t, n, trend, 0.01); count < 90 {
			t.Errorf("%d numbers with a trend of %v: %d of %d", n, trend, count, seeds)
		}
	}
}

// Kendall's S of 1…12 is 66, its variance 212.67, so z is 4.457.
func TestMannKendall_Ascending_ClosedForm(t *testing.T) {
	x := make([]float64, 12)
	for i := range x {
		x[i] = 100 + float64(i)
	}
	f, ok := Test(x, 0.01)
	if want := math.Erfc(4.45715 / math.Sqrt2); !ok || math.Abs(f.P/want-1) > 0.001 || math.Abs(f.By-0.11) > 1e-9 {
		t.Errorf("%+v, %v, want p %v and 11 %%", f, ok, want)
	}
}

func TestTest_TooShortOrFlat_NotFound(t *testing.T) {
	if _, ok := Test([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 0.5); ok {
		t.Error("11 numbers are too few")
	}
	if f, ok := Test(make([]float64, 20), 0.5); ok || f.P != 1 {
		t.Errorf("equal numbers have a trend: %+v", f)
	}
}
