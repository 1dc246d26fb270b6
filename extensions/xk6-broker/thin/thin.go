// Package thin chooses which of the measured values k6 gets as samples: k6 keeps each sample of a trend in memory for ever, and its
// outputs store each one.
package thin

import (
	"math/rand/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
)

// Budget is how many samples in an interval each trend of each tag set passes on. Beyond that they are a systematic choice from
// the interval's sorted distribution, at one ratio for the whole run.
const Budget = 200

// Trend thins one trend. It holds the first interval back until the second has shown the rate.
type Trend struct {
	held    *hist.Histogram
	sampler *hist.Sampler
}

// Take gives the samples of an interval, in ns and in no order. Interval is nil where nothing was measured; expected is the greatest
// number of values that an interval may have, 0 where that is not known; the last interval of a run holds nothing back.
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
		t.sampler = hist.NewSampler((count + Budget - 1) / Budget)
	}
	var values []int64
	for _, h := range []*hist.Histogram{t.held, interval} {
		if h != nil {
			t.sampler.Take(h, func(v int64) { values = append(values, v) })
		}
	}
	t.held = nil
	rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	return values
}
