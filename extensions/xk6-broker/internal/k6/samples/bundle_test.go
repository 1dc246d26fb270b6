package samples_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
)

// An output may store some of the tags as fields, and then knows the series apart by the time
// alone: no two of the values that are spread have the same, whatever their number and however
// short or late a flush.
func TestNoTwoSpreadValuesHaveOneTime(t *testing.T) {
	registry := metrics.NewRegistry()
	trend := registry.MustNewMetric("trend", metrics.Trend)
	var tags [30]*metrics.TagSet
	for i := range tags {
		tags[i] = registry.RootTagSet().With("url", string(rune('a'+i)))
	}
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[time.Time]bool{}
	now, from := time.Unix(1_700_000_000, 123_456_789), time.Unix(1_700_000_000, 0)
	for range 300 {
		b := &samples.Bundle{From: from, Now: now}
		for i := range tags {
			b.Shift = time.Duration(i)
			b.Spread(trend, tags[i], make([]int64, random.IntN(samples.Budget)))
		}
		for _, s := range b.Close() {
			if seen[s.Time] {
				t.Fatalf("two values at %v", s.Time)
			}
			seen[s.Time] = true
		}
		from = b.End()
		now = now.Add(samples.Interval - time.Duration(random.Int64N(int64(samples.Interval)+1)))
	}
}
