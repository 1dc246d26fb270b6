package samples_test

import (
	"math"
	"slices"
	"testing"

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

func TestChoose_FewValues_AllOfThem(t *testing.T) {
	for _, values := range [][]int64{{}, {5_000_000}, {7, 7}, {3, 9}, {1_000_001, 2_000_001, 3_000_001}} {
		var trend samples.Trend
		h := &hist.Histogram{}
		for _, v := range values {
			h.Record(v)
		}
		got := trend.Choose(h)
		slices.Sort(got)
		if len(got) != len(values) || len(got) > 0 && got[len(got)-1] != values[len(values)-1] {
			t.Errorf("%v of %v", got, values)
		}
	}
}

func TestChoose_ManyValues_KeepTheirQuantilesWithinTheBudget(t *testing.T) {
	const n = 20000
	var trend samples.Trend
	for range 10 {
		got := trend.Choose(interval(n))
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

// A stall of few messages is in no systematic choice, and a threshold on the maximum asks for it.
func TestChoose_GreatestOfTheRun_IsAmongTheSamples(t *testing.T) {
	var trend samples.Trend
	var got []int64
	for second := range 15 {
		h := rare()
		if second == 7 {
			h = rare(900e6, 900e6+44)
		}
		got = append(got, trend.Choose(h)...)
	}
	if most := slices.Max(got); len(got) != 15*samples.Budget || most != 900e6+44 {
		t.Errorf("%d samples, the greatest %d", len(got), most)
	}
}

// Each second has a greatest value, but one in 20,000 must not become one in 100: the high
// percentiles of the samples would be those of the greatest values.
func TestChoose_GreatestOfEachInterval_DoesNotMoveThePercentiles(t *testing.T) {
	var trend samples.Trend
	far := 0
	for second := range 60 {
		for _, v := range trend.Choose(rare(int64(500e6) - int64(second)*1e6)) { // never one more of the run's
			if v > 1e8 {
				far++
			}
		}
	}
	if far != 1 {
		t.Errorf("%d of the greatest values are samples, want that of the run", far)
	}
}
