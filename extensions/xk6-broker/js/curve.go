package js

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// curveSteps divide a decade of the curve evenly on a logarithmic axis, in numbers that people use: two is the median, ten is p90,
// twenty is p95.
var curveSteps = []float64{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8} //nolint:gochecknoglobals // a table

// curveDecades is how far the curve goes at most: to one value in ten million.
const curveDecades = 7

// curves passes on the percentile curve of the whole run of each trend of each topic, and of each group of its consumers. A threshold decides on
// the last that has its tags: so closed loops come before open ones, and where several groups have a trend, that of all together comes
// after theirs, without a group.
func (f *flusher) curves(result *load.Result, b *bundle) {
	run := f.run.state.Load().runTags
	for i := range result.Topics {
		b.shift = time.Duration(i) // two brokers may have topics of one name
		topic := &result.Topics[i]
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(topic.Trends))) { // a closed loop's name is the longer one
			all := topic.Trends[name]
			trend, loop := topic.Loop(name)
			labels := run.With("trend", trend)
			if loop != "" {
				labels = labels.With("loop", loop)
			}
			most := uint64(0)
			for _, g := range topic.Groups {
				if h := g.Trends[name]; h != nil {
					f.curve(named(labels, topic.Driver, topic.Topic, g.Group), h, b)
					most = max(most, h.Count())
				}
			}
			if all.Count() > most {
				f.curve(named(labels, topic.Driver, topic.Topic, ""), all, b)
			}
		}
	}
}

// curve passes on one curve, as far as its samples support it. The tag one_in is its axis: one value in so many is greater.
func (f *flusher) curve(tags *metrics.TagSet, h *hist.Histogram, b *bundle) {
	for decade, scale := 0, 1.0; decade < curveDecades; decade, scale = decade+1, scale*10 {
		for _, step := range curveSteps {
			// As it is written in decimal, for the rank of a quantile is exact.
			q := strconv.FormatFloat(1-1/(step*scale), 'g', decade+4, 64)
			p, _ := strconv.ParseFloat(q, 64)
			if !h.Supported(p) {
				return // nor is any that follows
			}
			b.add(f.run.metrics.curve, tags.With("quantile", q).With("one_in", strconv.FormatFloat(step*scale, 'g', 10, 64)), ms(h.Quantile(p)))
		}
	}
}
