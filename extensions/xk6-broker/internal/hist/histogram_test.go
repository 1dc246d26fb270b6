package hist_test

import (
	"bytes"
	"encoding/base64"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// samples are values that a histogram may find hard: random ones of several shapes, and both sides of every edge.
func samples() map[string][]int64 {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, value func() int64) []int64 {
		values := make([]int64, n)
		for i := range values {
			values[i] = min(max(value(), 0), hist.Highest)
		}
		return values
	}
	edges := []int64{0, hist.Highest, hist.Highest - 1}
	for v := int64(1); v <= hist.Highest; v *= 2 {
		for d := int64(-2); d <= 2; d++ {
			edges = append(edges, min(max(v+d, 0), hist.Highest), min(max(v+v/2+d, 0), hist.Highest))
		}
	}
	return map[string][]int64{
		"one":         {1_234_567},
		"zero":        {0, 0, 0},
		"edges":       edges,
		"constant":    draw(1000, func() int64 { return 2048 }),
		"uniform":     draw(20_000, func() int64 { return r.Int64N(hist.Highest + 1) }),
		"exponential": draw(20_000, func() int64 { return int64(r.ExpFloat64() * 1e6) }),
		"lognormal":   draw(20_000, func() int64 { return int64(math.Exp(14 + 2*r.NormFloat64())) }),
		"any scale":   draw(20_000, func() int64 { return r.Int64N(1 << (1 + r.IntN(41))) }),
		"two modes":   draw(20_000, func() int64 { return []int64{50_000, 3_000_000_000}[r.IntN(2)] + r.Int64N(1000) }),
	}
}

func record(values []int64) *hist.Histogram {
	h := &hist.Histogram{}
	for _, v := range values {
		h.Record(v)
	}
	return h
}

var quantiles = []float64{0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.999999, 1}

// near tells whether two values are the same to three digits.
func near(a, b float64) bool { return math.Abs(a-b) <= 1+max(a, b)/1000 }

func TestHistogramAgreesWithTheValues(t *testing.T) {
	for name, values := range samples() {
		t.Run(name, func(t *testing.T) {
			h := record(values)
			slices.Sort(values)
			if h.Count() != uint64(len(values)) || h.Min() != values[0] || h.Max() != values[len(values)-1] {
				t.Errorf("count %d, min %d, max %d, want %d, %d, %d",
					h.Count(), h.Min(), h.Max(), len(values), values[0], values[len(values)-1])
			}
			var sum float64
			for _, v := range values {
				sum += float64(v)
			}
			mean := sum / float64(len(values))
			if !near(h.Mean(), mean) {
				t.Errorf("mean %g, want %g", h.Mean(), mean)
			}
			for _, q := range quantiles {
				// The first value that has at least q*n at or below it.
				exact := values[0]
				if rank := int(math.Ceil(q*float64(len(values)) - 1e-9)); rank > 0 {
					exact = values[rank-1]
				}
				if got := h.Quantile(q); got < exact || !near(float64(got), float64(exact)) {
					t.Errorf("quantile %g is %d, want %d", q, got, exact)
				}
			}
			if h.Quantile(0) != h.Min() || h.Quantile(1) != h.Max() {
				t.Errorf("quantiles 0 and 1 are %d and %d, not the extremes", h.Quantile(0), h.Quantile(1))
			}
		})
	}
}

func TestHistogramAgreesWithHdrHistogram(t *testing.T) {
	for name, values := range samples() {
		t.Run(name, func(t *testing.T) {
			h := record(values)
			oracle := hdrhistogram.New(1, hist.Highest, 3)
			for _, v := range values {
				if err := oracle.RecordValue(v); err != nil {
					t.Fatal(err)
				}
			}
			if decoded, err := hdrhistogram.Decode([]byte(base64.StdEncoding.EncodeToString(h.Pack().HDR))); err != nil {
				t.Fatal(err)
			} else if !decoded.Equals(oracle) {
				t.Fatal("the buckets differ")
			}
			for _, q := range quantiles[1:] {
				// The oracle rounds the rank to the nearest, so ask it for the rank itself.
				rank := math.Ceil(q*float64(len(values)) - 1e-9)
				want := min(oracle.ValueAtPercentile(100*rank/float64(len(values))), h.Max())
				if got := h.Quantile(q); got != want {
					t.Errorf("quantile %g is %d, want %d", q, got, want)
				}
			}
			var counts []hdrhistogram.Bar
			for _, bar := range oracle.Distribution() {
				if bar.Count > 0 {
					counts = append(counts, bar)
				}
			}
			i := 0
			for v, c := range h.All() {
				if i == len(counts) || v != min(counts[i].To, h.Max()) || c != uint64(counts[i].Count) {
					t.Fatalf("value %d of All is %d, %d times", i, v, c)
				}
				i++
			}
			if i != len(counts) {
				t.Errorf("All has %d values, want %d", i, len(counts))
			}
			if !near(h.Mean(), oracle.Mean()) {
				t.Errorf("mean %g, want %g", h.Mean(), oracle.Mean())
			}
		})
	}
}

func TestOutOfRange(t *testing.T) {
	recorder := hist.NewRecorder(1)
	plain := &hist.Histogram{}
	for _, record := range []func(int64, uint64){
		func(v int64, n uint64) { recorder.RecordN(0, v, n) },
		plain.RecordN,
	} {
		record(-1, 3)
		record(math.MinInt64, 1)
		record(5, 0)
		record(hist.Highest, 1)
		record(hist.Highest+1, 2)
		record(math.MaxInt64, 1)
	}
	for name, h := range map[string]*hist.Histogram{"recorder": recorder.Snapshot(), "histogram": plain} {
		if h.Count() != 4 || h.Min() != hist.Highest || h.Max() != hist.Highest {
			t.Errorf("%s: count %d, min %d, max %d", name, h.Count(), h.Min(), h.Max())
		}
	}
}

func TestEmpty(t *testing.T) {
	recorder := hist.NewRecorder(0)
	for name, h := range map[string]*hist.Histogram{"zero": {}, "snapshot": recorder.Snapshot()} {
		if h.Count() != 0 || h.Min() != 0 || h.Max() != 0 || h.Mean() != 0 || h.Quantile(0.5) != 0 ||
			h.Quantile(1) != 0 || h.Supported(0) {
			t.Errorf("%s: not empty: %+v", name, h)
		}
		for v := range h.All() {
			t.Errorf("%s: has the value %d", name, v)
		}
	}
}

func TestSupported(t *testing.T) {
	for _, c := range []struct {
		count  uint64
		q      float64
		beyond uint64
	}{
		{0, 0.5, 0},
		{19, 0.5, 9},
		{20, 0.5, 10},
		{999, 0.99, 9},
		{1000, 0.99, 10},
		{9_999, 0.999, 9},
		{10_000, 0.999, 10},
		{99_999, 0.9999, 9},
		{100_000, 0.9999, 10},
		{999_999, 0.99999, 9},
		{1_000_000, 0.99999, 10},
		{9_999_999, 0.999999, 9},
		{10_000_000, 0.999999, 10},
		{99_999_999, 0.9999999, 9},
		{100_000_000, 0.9999999, 10},
		{1_000_000_000_000, 0.99999999999, 10},
		{999_999_999_999, 0.99999999999, 9},
		{1_000_000, 1, 0},
		{1_000_000, 2, 0},
		{10, 0, 10},
		{math.MaxInt64, 5e-324, math.MaxInt64 - 1},
		{math.MaxInt64, 0.5, math.MaxInt64 / 2},
		{10, -1, 10},
		{10, math.NaN(), 10},
	} {
		h := &hist.Histogram{}
		h.RecordN(1, c.count)
		if got := h.Beyond(c.q); got != c.beyond {
			t.Errorf("beyond %g of %d are %d, want %d", c.q, c.count, got, c.beyond)
		}
		if got := h.Supported(c.q); got != (c.beyond >= 10) {
			t.Errorf("%g of %d: supported is %v", c.q, c.count, got)
		}
	}
}

func TestPercentiles(t *testing.T) {
	h := &hist.Histogram{}
	for v := range int64(1000) {
		h.Record(v)
	}
	want := []hist.Percentile{
		{Q: 0.999, Value: 998, Beyond: 1},
		{Q: 0.5, Value: 499, Beyond: 500, Supported: true},
		{Q: 0.99, Value: 989, Beyond: 10, Supported: true},
		{Q: 1, Value: 999},
	}
	if got := h.Percentiles([]float64{0.999, 0.5, 0.99, 1}); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// equal reports whether two histograms have the same values, extremes included.
func equal(a, b *hist.Histogram) bool { return reflect.DeepEqual(a.Pack(), b.Pack()) }

// same reports whether two histograms have the same counts in the same buckets.
func same(a, b *hist.Histogram) bool { return bytes.Equal(a.Pack().HDR, b.Pack().HDR) }

func TestMergeIsTheHistogramOfAllValues(t *testing.T) {
	for name, values := range samples() {
		t.Run(name, func(t *testing.T) {
			values = append(values, -1, hist.Highest+1)
			want := record(values)
			r := rand.New(rand.NewPCG(3, 4))
			for range 20 {
				cut := r.IntN(len(values) + 1)
				merged, other := record(values[:cut]), record(values[cut:])
				merged.Merge(other)
				merged.Merge(&hist.Histogram{})
				merged.Merge(nil)
				if !equal(merged, want) {
					t.Fatalf("cut at %d of %d, the parts do not make up the whole", cut, len(values))
				}
				if !equal(other, record(values[cut:])) {
					t.Fatal("Merge changed what was merged in")
				}
			}
		})
	}
}

func TestSubIsTheInterval(t *testing.T) {
	for name, values := range samples() {
		t.Run(name, func(t *testing.T) {
			values = append(values, -1, hist.Highest+1)
			recorder := hist.NewRecorder(4)
			r := rand.New(rand.NewPCG(5, 6))
			var prev *hist.Histogram
			whole := &hist.Histogram{}
			for rest := values; len(rest) > 0; {
				part := rest[:1+r.IntN(len(rest))]
				rest = rest[len(part):]
				for i, v := range part {
					recorder.Record(uint32(i), v)
				}
				now := recorder.Snapshot()
				got, want := now.Sub(prev), record(part)
				if !same(got, want) {
					t.Fatal("the interval is not what was recorded in it")
				}
				if got.Count() > 0 && (got.Min() > want.Min() || !near(float64(got.Min()), float64(want.Min())) ||
					got.Max() < want.Max() || !near(float64(got.Max()), float64(want.Max()))) {
					t.Fatalf("extremes %d and %d, want %d and %d", got.Min(), got.Max(), want.Min(), want.Max())
				}
				if (prev == nil || want.Max() > prev.Max()) && got.Max() != want.Max() {
					t.Fatalf("a new maximum of %d is given as %d", want.Max(), got.Max())
				}
				whole.Merge(got)
				prev = now
			}
			if all := record(values); !equal(whole, all) || !equal(prev, all) {
				t.Error("the intervals do not make up the whole")
			}
			if empty := prev.Sub(prev); !equal(empty, &hist.Histogram{}) {
				t.Errorf("nothing happened between a snapshot and itself, but %+v", empty)
			}
		})
	}
}

func TestSubOfALaterSnapshotPanics(t *testing.T) {
	early, late := record([]int64{1, 2}), record([]int64{1, 2, 1 << 40})
	defer func() {
		if recover() == nil {
			t.Error("an interval that ends before it begins was computed")
		}
	}()
	early.Sub(late)
}
