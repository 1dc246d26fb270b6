package samples_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
)

func interval(n int) *hist.Histogram {
	h := &hist.Histogram{}
	for v := range n {
		h.Record(int64(v) * 1000)
	}
	return h
}

func TestFewValuesAllPass(t *testing.T) {
	var trend samples.Trend
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
	var trend samples.Trend
	if got := trend.Take(interval(7), 0, true); len(got) != 7 {
		t.Errorf("%d samples, want 7", len(got))
	}
}

func TestManyValuesKeepTheirQuantilesWithinTheBudget(t *testing.T) {
	const n = 20000
	var trend samples.Trend
	for range 10 {
		got := trend.Take(interval(n), n, false)
		if len(got) != samples.Budget {
			t.Fatalf("%d samples, want %d", len(got), samples.Budget)
		}
		if slices.IsSorted(got) {
			t.Error("samples come in order: a chart of the interval would show a ramp")
		}
		slices.Sort(got)
		for _, q := range []float64{.05, .5, .9, .99} {
			want := q * n * 1000
			if have := float64(got[int(q*samples.Budget)]); math.Abs(have-want) > 0.01*n*1000 {
				t.Errorf("quantile %v is %v, want %v", q, have, want)
			}
		}
	}
}

// rare is a second of a busy trend, with some values that are far from the others.
func rare(far ...int64) *hist.Histogram {
	h := &hist.Histogram{}
	h.RecordN(1e6, 20000)
	for _, v := range far {
		h.Record(v)
	}
	return h
}

// A stall that only 45 of 300,000 messages met is in no systematic choice of 3,000, and is what a
// threshold on the maximum asks for.
func TestTheExtremesOfTheRunPass(t *testing.T) {
	var trend samples.Trend
	var got []int64
	stalls := make([]int64, 45)
	for i := range stalls {
		stalls[i] = 900e6 + int64(i)
	}
	for second := range 15 {
		h := rare()
		if second == 7 {
			h = rare(append(stalls, 123)...)
		}
		got = append(got, trend.Take(h, 20000, false)...)
	}
	if len(got) > 15*samples.Budget+2 {
		t.Errorf("%d samples are more than the budget", len(got))
	}
	if least, most := slices.Min(got), slices.Max(got); least != 123 || most != 900e6+44 {
		t.Errorf("from %d to %d, want 123 to %d", least, most, int64(900e6)+44)
	}
	if !trend.Thinned() {
		t.Error("few of many passed")
	}
	passed := trend.Passed()
	if passed.Count() != uint64(len(got)) || passed.Max() != slices.Max(got) || passed.Min() != slices.Min(got) {
		t.Errorf("%d passed, from %d to %d", passed.Count(), passed.Min(), passed.Max())
	}
}

// Each second has a greatest value, but one in 20,000 must not become one in 200: the high
// percentiles of the samples would be those of the greatest values.
func TestTheExtremesOfEachIntervalDoNotMoveThePercentiles(t *testing.T) {
	var trend samples.Trend
	all := &hist.Histogram{}
	for second := range 60 {
		h := rare(int64(500e6) - int64(second)*1e6) // never one more of the run's
		all.Merge(h)
		trend.Take(h, 20000, false)
	}
	if got, want := trend.Passed().Quantile(0.999), all.Quantile(0.999); float64(got) > 1.01*float64(want) {
		t.Errorf("p99.9 is %d by the samples and %d by all values", got, want)
	}
}

// Where nothing is thinned the samples are the values themselves: none twice, none that is not
// there.
func TestTheExtremesAddNothing(t *testing.T) {
	for _, values := range [][]int64{{5_000_000}, {7, 7}, {3, 9}, {1_000_001, 2_000_001, 3_000_001}} {
		var trend samples.Trend
		h := &hist.Histogram{}
		for _, v := range values {
			h.Record(v)
		}
		got := trend.Take(h, 0, true)
		slices.Sort(got)
		if len(got) != len(values) || got[0] != values[0] || got[len(got)-1] != values[len(values)-1] {
			t.Errorf("%v of %v", got, values)
		}
		if trend.Thinned() {
			t.Errorf("all of %v passed", values)
		}
	}
}

// However long the run, k6 keeps no more samples of a trend than of an hour.
func TestALongRunPassesNoMoreThanAnHour(t *testing.T) {
	for run, want := range map[time.Duration]uint64{0: 200, time.Minute: 200, time.Hour: 200, 2 * time.Hour: 100, 24 * time.Hour: 8, 1000 * time.Hour: 1} {
		budget := samples.BudgetFor(run)
		if budget != want {
			t.Errorf("%v: %d a second, want %d", run, budget, want)
		}
		trend := samples.Trend{Budget: budget}
		for range 5 {
			if n := len(trend.Take(interval(20000), 20000, false)); uint64(n) < budget || uint64(n) > budget+2 { // with the run's extremes
				t.Errorf("%v: %d samples, want %d", run, n, budget)
			}
		}
	}
}
