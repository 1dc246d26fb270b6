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

func TestTake_FewValues_AllAfterTheSecondInterval(t *testing.T) {
	var trend samples.Trend
	if got := trend.Take(interval(70), 0, false); got != nil {
		t.Fatalf("the first interval passed before the rate was known: %d values", len(got))
	}
	if got := trend.Take(interval(50), 0, false); len(got) != 120 {
		t.Errorf("%d samples of the first two intervals, want all 120", len(got))
	}
	if got := trend.Take(interval(0), 0, true); len(got) != 0 {
		t.Errorf("%d samples of no values", len(got))
	}
}

func TestTake_OneInterval_AllValuesUnchanged(t *testing.T) {
	for _, values := range [][]int64{{}, {5_000_000}, {7, 7}, {3, 9}, {1_000_001, 2_000_001, 3_000_001}} {
		var trend samples.Trend
		h := &hist.Histogram{}
		for _, v := range values {
			h.Record(v)
		}
		got := trend.Take(h, 0, true)
		slices.Sort(got)
		if len(got) != len(values) || len(got) > 0 && got[len(got)-1] != values[len(values)-1] {
			t.Errorf("%v of %v", got, values)
		}
	}
}

func TestTake_ManyValues_KeepTheirQuantilesWithinTheBudget(t *testing.T) {
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
			if have := float64(got[int(q*samples.Budget)]); math.Abs(have-want) > 0.012*n*1000 {
				t.Errorf("quantile %v is %v, want %v", q, have, want)
			}
		}
	}
}

// A broker stands still for 2 s of 20 s: a tenth of the messages are confirmed in one second, and
// are a tenth of the samples.
func TestTake_Stall_WeighsAsItsMessages(t *testing.T) {
	const rate = 1000
	var trend samples.Trend
	var got []int64
	for second := range 20 {
		h := &hist.Histogram{}
		switch {
		case second == 10 || second == 11:
		case second == 12:
			for v := range 2 * rate {
				h.Record(int64(v) * int64(time.Millisecond))
			}
			fallthrough
		default:
			h.RecordN(1e5, rate)
		}
		got = append(got, trend.Take(h, 0, second == 19)...)
	}
	late := 0
	for _, v := range got {
		if v > 1e6 {
			late++
		}
	}
	if share := float64(late) / float64(len(got)); math.Abs(share-0.1) > 0.01 {
		t.Errorf("%d of %d samples waited, want a tenth", late, len(got))
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
func TestTake_GreatestOfTheRun_IsAmongTheSamples(t *testing.T) {
	var trend samples.Trend
	var got []int64
	for second := range 15 {
		h := rare()
		if second == 7 {
			h = rare(900e6, 900e6+44)
		}
		got = append(got, trend.Take(h, 20000, false)...)
	}
	if most := slices.Max(got); len(got) > 15*samples.Budget+1 || most != 900e6+44 {
		t.Errorf("%d samples, the greatest %d", len(got), most)
	}
}

// Each second has a greatest value, but one in 20,000 must not become one in 100: the high
// percentiles of the samples would be those of the greatest values.
func TestTake_GreatestOfEachInterval_DoesNotMoveThePercentiles(t *testing.T) {
	var trend samples.Trend
	far := 0
	for second := range 60 {
		for _, v := range trend.Take(rare(int64(500e6)-int64(second)*1e6), 20000, false) { // never one more of the run's
			if v > 1e8 {
				far++
			}
		}
	}
	if far > 2 {
		t.Errorf("%d of the greatest values are samples, want that of the run", far)
	}
}

// However long the run, k6 keeps no more samples of a trend than of an hour.
func TestBudgetFor_LongRun_NoMoreThanAnHour(t *testing.T) {
	for run, want := range map[time.Duration]uint64{0: 100, time.Hour: 100, 2 * time.Hour: 50, 24 * time.Hour: 4, 1000 * time.Hour: 1} {
		if got := samples.BudgetFor(run); got != want {
			t.Errorf("%v: %d a second, want %d", run, got, want)
		}
		trend := samples.Trend{Budget: want}
		for range 5 {
			if n := len(trend.Take(interval(20000), 20000, false)); uint64(n) > want+1 {
				t.Errorf("%v: %d samples, want %d", run, n, want)
			}
		}
	}
}
