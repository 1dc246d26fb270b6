package k6

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// oneIn are the points on the axis of a curve: one value in so many is greater. They divide a
// decade evenly on a logarithmic axis: 2 is the median, 10 is p90, 20 is p95.
var oneIn = []float64{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8}

// curveDecades is the length of a curve: to one value in ten million.
const curveDecades = 7

// curve is the percentile curve of a trend of a topic and loop, of one consumer group or of all
// together.
type curve struct {
	trend, loop, group string // loop and group are "" if the curve has none
	values             *hist.Histogram
}

// curvesOf lists the curves of a topic. All groups together have one only if no single group has
// all values.
func curvesOf(topic *result.Topic) (all []curve) {
	for _, name := range slices.Sorted(maps.Keys(topic.Trends)) {
		trend, loop := topic.Loop(name)
		most := uint64(0)
		for _, g := range topic.Groups {
			if h := g.Trends[name]; h != nil {
				all = append(all, curve{trend, loop, g.Group, h})
				most = max(most, h.Count())
			}
		}
		if h := topic.Trends[name]; h.Count() > most {
			all = append(all, curve{trend, loop, "", h})
		}
	}
	return all
}

// curves passes on the percentile curves of the run, as far as the samples support them. The tag
// one_in is the axis: one value in so many is greater.
func (f *flusher) curves(result *result.Result, b *samples.Bundle) {
	for i := range result.Topics {
		topic := &result.Topics[i]
		b.Shift = time.Duration(i) // two brokers may have topics of one name
		for _, c := range curvesOf(topic) {
			tags := named(f.run.state.Load().runTags.With("trend", c.trend), topic.Driver, topic.Topic, c.group)
			if c.loop != "" {
				tags = tags.With("loop", c.loop)
			}
			f.curve(c.values, tags, b)
		}
	}
}

// curve adds the points that the samples support.
func (f *flusher) curve(values *hist.Histogram, tags *metrics.TagSet, b *samples.Bundle) {
	for decade := range curveDecades {
		for _, step := range oneIn {
			n := step * math.Pow10(decade)
			// The quantile is rounded as its decimal text, because its rank is exact.
			text := strconv.FormatFloat(1-1/n, 'g', decade+4, 64)
			q, _ := strconv.ParseFloat(text, 64)
			if values.Supported(q) {
				tags := tags.With("quantile", text).With("one_in", strconv.FormatFloat(n, 'g', 10, 64))
				b.Add(f.run.metrics.curve, tags, ms(values.Quantile(q)))
			}
		}
	}
}
