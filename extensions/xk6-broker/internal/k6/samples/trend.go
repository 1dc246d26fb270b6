// Package samples makes k6's samples of measurements, interval by interval. k6 keeps each sample of
// a trend in memory, so trends are thinned.
package samples

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Budget is the number of samples of a trend of a tag set in an interval. Beyond it samples are a
// systematic choice from the sorted distribution, at one ratio for the whole run.
const Budget = 200

// maxSamples is the number of samples of a trend in a run: those of an hour.
const maxSamples = 3600 * Budget

// BudgetFor returns the budget of each second of a run: [Budget] up to an hour, then less.
func BudgetFor(run time.Duration) uint64 {
	return uint64(max(1, min(Budget, maxSamples/max(1, int64(run.Seconds())))))
}

// Trend thins one trend. It holds the first interval back until the second has shown the rate.
type Trend struct {
	Budget uint64 // samples in an interval; 0 is [Budget]

	held    *hist.Histogram
	sampler *hist.Sampler
	passed  hist.Histogram
	taken   uint64 // values
}

// Passed returns the distribution of the samples so far. The caller does not change it.
func (t *Trend) Passed() *hist.Histogram { return &t.passed }

// Thinned reports whether anything was left out so far.
func (t *Trend) Thinned() bool { return t.passed.Count() < t.taken }

// Take returns the samples of an interval, in ns and in no order. Interval is nil without values;
// expected is the greatest number of values in an interval, 0 if unknown. The last interval holds
// nothing back. The greatest and the least value of the run are always samples.
func (t *Trend) Take(interval *hist.Histogram, expected uint64, last bool) []int64 {
	if t.sampler == nil {
		count := expected
		if interval != nil {
			count = max(count, interval.Count())
		}
		if t.held == nil && expected == 0 && !last {
			t.held = interval
			return nil
		}
		budget := cmp.Or(t.Budget, Budget)
		t.sampler = hist.NewSampler((count + budget - 1) / budget)
	}
	var values []int64
	for _, h := range []*hist.Histogram{t.held, interval} {
		if h != nil && h.Count() > 0 {
			values = append(values, t.take(h)...)
		}
	}
	t.held = nil
	rand.Shuffle(
		len(values), func(i, j int) { values[i], values[j] = values[j], values[i] },
	) //gosec:disable G404 -- an order, no secret
	return values
}

// take chooses from an interval with values. Extremes of the run so far replace the outermost
// choices. The extremes of each interval would distort the percentiles of the samples.
func (t *Trend) take(h *hist.Histogram) []int64 {
	var values []int64
	t.taken += h.Count()
	t.sampler.Take(h, func(v int64) { values = append(values, v) })
	none := t.passed.Count() == 0
	if none || h.Max() > t.passed.Max() {
		values = append(values[:max(0, len(values)-1)], h.Max())
	}
	if none || h.Min() < t.passed.Min() {
		if len(values) > 1 {
			values[0] = h.Min()
		} else if len(values) == 0 || values[0] != h.Min() {
			values = append(values, h.Min())
		}
	}
	for _, v := range values {
		t.passed.Record(v)
	}
	return values
}
