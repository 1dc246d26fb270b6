package thin_test

import (
	"math"
	"slices"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/thin"
)

func interval(n int) *hist.Histogram {
	h := &hist.Histogram{}
	for v := range n {
		h.Record(int64(v) * 1000)
	}
	return h
}

func TestFewValuesAllPass(t *testing.T) {
	var trend thin.Trend
	if held := trend.Take(interval(150), 0, false); held != nil {
		t.Fatalf("the first interval passed before the rate was known: %d values", len(held))
	}
	if got := trend.Take(interval(100), 0, false); len(got) != 250 {
		t.Errorf("%d samples of the first two intervals, want all 250", len(got))
	}
	if got := trend.Take(nil, 0, true); len(got) != 0 {
		t.Errorf("%d samples of no values", len(got))
	}
}

func TestARunOfOneIntervalIsNotHeldBack(t *testing.T) {
	var trend thin.Trend
	if got := trend.Take(interval(7), 0, true); len(got) != 7 {
		t.Errorf("%d samples, want 7", len(got))
	}
}

func TestManyValuesKeepTheirQuantilesWithinTheBudget(t *testing.T) {
	const n = 20000
	var trend thin.Trend
	for range 10 {
		got := trend.Take(interval(n), n, false)
		if len(got) != thin.Budget {
			t.Fatalf("%d samples, want %d", len(got), thin.Budget)
		}
		if slices.IsSorted(got) {
			t.Error("samples come in order: a chart of the interval would show a ramp")
		}
		slices.Sort(got)
		for _, q := range []float64{.05, .5, .9, .99} {
			want := q * n * 1000
			if have := float64(got[int(q*thin.Budget)]); math.Abs(have-want) > 0.01*n*1000 {
				t.Errorf("quantile %v is %v, want %v", q, have, want)
			}
		}
	}
}
