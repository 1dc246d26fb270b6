package hist_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// drift is how far the kept values are from standing for all values: the greatest difference, over every value v, of
// the number kept up to v and a ratio-th of the number of all up to v, in rank steps. Both are sorted.
func drift(all, kept []int64, ratio uint64) float64 {
	worst, j := 0.0, 0
	for i, v := range all {
		if i+1 < len(all) && all[i+1] == v {
			continue
		}
		for j < len(kept) && kept[j] <= v {
			j++
		}
		worst = max(worst, math.Abs(float64(j)-float64(i+1)/float64(ratio)))
	}
	return worst
}

// reported are the values of a histogram as it reports them.
func reported(h *hist.Histogram) []int64 {
	var values []int64
	for v, c := range h.All() {
		for range c {
			values = append(values, v)
		}
	}
	return values
}

func TestSamplerIsSystematicWithinAnInterval(t *testing.T) {
	for name, values := range samples() {
		for _, ratio := range []uint64{0, 1, 2, 3, 7, 10, 97, 1000, 1 << 40} {
			interval := record(values)
			var kept []int64
			hist.NewSampler(ratio).Take(interval, func(v int64) { kept = append(kept, v) })
			if !slices.IsSorted(kept) {
				t.Errorf("%s: one in %d: the kept values do not ascend", name, ratio)
			}
			if d := drift(reported(interval), kept, max(ratio, 1)); d > 1 {
				t.Errorf("%s: one in %d: off by %.2f rank steps", name, ratio, d)
			}
			if ratio <= 1 && !slices.Equal(kept, reported(interval)) {
				t.Errorf("%s: one in %d is not all", name, ratio)
			}
		}
	}
}

// loads are intervals as a run has them, by the number of the interval.
func loads(r *rand.Rand) map[string]func(i, n int) []int64 {
	values := func(n int, value func(j int) float64) []int64 {
		v := make([]int64, n)
		for j := range v {
			v[j] = int64(value(j))
		}
		return v
	}
	return map[string]func(i, n int) []int64{
		"steady": func(_, n int) []int64 {
			return values(n, func(int) float64 { return 1e6 * math.Exp(0.4*r.NormFloat64()) })
		},
		"the same every time": func(_, n int) []int64 {
			return values(n, func(j int) float64 { return 1e6 + 1e4*float64(j) })
		},
		"growing": func(i, n int) []int64 {
			return values(n, func(int) float64 { return 1e6 * math.Exp(float64(i)/100+0.3*r.NormFloat64()) })
		},
		"pulsing": func(i, n int) []int64 {
			n = 1 + n*(i%7)/7
			return values(n, func(int) float64 { return 1e6 * float64(1+i%7) * (1 + r.Float64()) })
		},
		"few values": func(_, n int) []int64 {
			return values(n, func(j int) float64 { return []float64{500, 900, 1700}[j%3] })
		},
		"often none": func(i, n int) []int64 {
			return values(min(n, max(0, i%10-6)), func(int) float64 { return 1e6 * (1 + r.ExpFloat64()) })
		},
	}
}

func TestSamplerKeepsTheQuantilesOfARun(t *testing.T) {
	const intervals = 100
	for name := range loads(nil) {
		for _, c := range []struct{ size, ratio int }{{500, 1}, {500, 2}, {500, 10}, {499, 10}, {500, 500}, {500, 1700}, {2000, 37}} {
			t.Run(fmt.Sprintf("%s/%d in %d", name, c.size, c.ratio), func(t *testing.T) {
				load := loads(rand.New(rand.NewPCG(7, 8)))[name]
				sampler := hist.NewSampler(uint64(c.ratio))
				all, sample := &hist.Histogram{}, &hist.Histogram{}
				for i := range intervals {
					interval := record(load(i, c.size))
					all.Merge(interval)
					before := sample.Count()
					sampler.Take(interval, sample.Record)
					if got := sample.Count() - before; got > interval.Count() {
						t.Fatalf("interval %d: %d kept of %d", i, got, interval.Count())
					}
					if want := float64(all.Count()) / float64(c.ratio); math.Abs(float64(sample.Count())-want) > 0.5 {
						t.Fatalf("after interval %d, %d are kept, want %.1f", i, sample.Count(), want)
					}
				}
				// An interval is off by up to a rank step, and errors add up like random ones: with the root
				// of the number of intervals. A random choice of 5,000 values is off by about 100.
				steps := 2 * math.Sqrt(intervals)
				d := drift(reported(all), reported(sample), uint64(c.ratio))
				t.Logf("off by %.2f rank steps of %d", d, sample.Count())
				if d > steps {
					t.Errorf("off by %.2f rank steps after %d intervals", d, intervals)
				}
			})
		}
	}
}
