// Package samples makes k6's samples of measurements, interval by interval. k6 keeps each sample of
// a trend in memory, so trends are thinned.
package samples

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Budget is the number of samples of a trend of a tag set in an interval of a steady run.
const Budget = 100

// maxSamples is the number of samples of a trend in a run: those of an hour.
const maxSamples = 3600 * Budget

// BudgetFor returns the budget of each second of a run: [Budget] up to an hour, then less.
func BudgetFor(run time.Duration) uint64 {
	return uint64(max(1, min(Budget, maxSamples/max(1, int64(run.Seconds())))))
}

// Trend thins one trend, at one ratio for the whole run: after a stall all messages that waited are
// confirmed in one second, and k6's percentiles must show as many of them as of the others.
type Trend struct {
	Budget uint64 // samples in an interval; 0 is [Budget]

	held     *hist.Histogram // the first interval, until the second has shown the rate
	sampler  *hist.Sampler
	greatest int64 // of the run so far
}

// Take returns the samples of an interval, in ns and in no order. Expected is the greatest number of
// values in an interval, 0 if unknown. The last interval holds nothing back. The greatest value of
// the run is always a sample; the greatest of each interval would distort the percentiles.
func (t *Trend) Take(interval *hist.Histogram, expected uint64, last bool) []int64 {
	if interval.Count() == 0 && !last {
		return nil
	}
	all := &hist.Histogram{}
	all.Merge(t.held)
	if t.sampler == nil {
		if t.held == nil && expected == 0 && !last {
			t.held = interval
			return nil
		}
		count, budget := max(expected, all.Count(), interval.Count()), cmp.Or(t.Budget, Budget)
		t.sampler = hist.NewSampler((count + budget - 1) / budget)
	}
	all.Merge(interval)
	t.held = nil
	var values []int64
	t.sampler.Take(all, func(v int64) { values = append(values, v) })
	if most := all.Max(); most > t.greatest {
		t.greatest = most
		values = append(values[:max(0, len(values)-1)], most)
	}
	rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] }) //gosec:disable G404 -- an order
	return values
}
