// Package samples gives k6 what was measured, interval by interval, and chooses which of the values are samples: k6 keeps each sample of a
// trend in memory for ever, and its outputs store each one.
package samples

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Budget is how many samples in an interval each trend of each tag set passes on. Beyond that they are a systematic choice from
// the interval's sorted distribution, at one ratio for the whole run.
const Budget = 200

// mostSamples is how many samples a trend passes on in a whole run, however long: an hour's.
const mostSamples = 3600 * Budget

// BudgetFor is the budget of each second of a run that may last so long: [Budget] up to an hour, then less.
func BudgetFor(run time.Duration) uint64 {
	return uint64(max(1, min(Budget, mostSamples/max(1, int64(run.Seconds())))))
}

// Trend thins one trend. It holds the first interval back until the second has shown the rate.
type Trend struct {
	Budget uint64 // samples in an interval; 0 is the constant of that name

	held    *hist.Histogram
	sampler *hist.Sampler
	passed  hist.Histogram
	taken   uint64 // values, of which some were passed on
}

// Passed is the distribution of what was passed on so far. The caller does not change it.
func (t *Trend) Passed() *hist.Histogram { return &t.passed }

// Thinned reports whether anything was left out so far.
func (t *Trend) Thinned() bool { return t.passed.Count() < t.taken }

// Take gives the samples of an interval, in ns and in no order. Interval is nil where nothing was measured; expected is the greatest
// number of values that an interval may have, 0 where that is not known; the last interval of a run holds nothing back. The greatest
// and the least value of the run so far are always among what was passed on.
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
	rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] }) //gosec:disable G404 -- an order, no secret
	return values
}

// take chooses from an interval that has values. Its extremes take the place of the outermost values chosen, but only where they are
// those of the run so far: were each interval's greatest value a sample, every 200th would be one, and the high percentiles of the
// samples would be those of the greatest values.
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
