// Package samples makes k6's samples of measurements, interval by interval. k6 keeps each sample of
// a trend in memory, so trends are thinned.
package samples

import (
	"math/rand/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Budget is the number of samples of a trend of a tag set in an interval.
const Budget = 100

// Trend chooses the samples of one trend.
type Trend struct {
	greatest int64 // of the run so far
}

// Choose returns at most [Budget] values of an interval, in ns and in no order, at equal distances
// in rank order. The greatest value of the run is always among them. The greatest of each interval
// is not, because it would distort the percentiles of the samples.
func (t *Trend) Choose(interval *hist.Histogram) []int64 {
	count := min(interval.Count(), Budget)
	if count == 0 {
		return nil
	}
	distance := float64(interval.Count()) / float64(count)
	values := make([]int64, 0, count)
	rank := uint64(0)
	for v, n := range interval.All() {
		rank += n
		for uint64(len(values)) < count && (float64(len(values))+0.5)*distance < float64(rank) {
			values = append(values, v)
		}
	}
	if most := interval.Max(); most > t.greatest {
		t.greatest = most
		values[len(values)-1] = most
	}
	rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] }) //gosec:disable G404 -- an order
	return values
}
