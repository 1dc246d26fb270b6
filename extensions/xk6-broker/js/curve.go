package js

import (
	"strconv"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// curveSteps divide a decade of the curve evenly on a logarithmic axis, in numbers that people use: two is the median, ten is p90,
// twenty is p95.
var curveSteps = []float64{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8} //nolint:gochecknoglobals // a table

// curveDecades is how far the curve goes at most: to one value in ten million.
const curveDecades = 7

// curves passes on the percentile curve of the whole run of each trend of each topic, as far as its samples support it. Its tag one_in
// is the curve's axis: one value in so many is greater.
func (f *flusher) curves(result *load.Result, b *bundle) {
	run := f.run.state.Load().runTags
	for i, topic := range result.Topics {
		b.shift = time.Duration(i) // two brokers may have topics of one name
		tags := run.With("driver", topic.Driver).With("topic", tagValue(topic.Topic))
		for trend, h := range topic.Trends {
			tags := tags.With("trend", trend)
			for decade, scale := 0, 1.0; decade < curveDecades; decade, scale = decade+1, scale*10 {
				for _, step := range curveSteps {
					// As it is written in decimal, for the rank of a quantile is exact.
					q := strconv.FormatFloat(1-1/(step*scale), 'g', decade+4, 64)
					p, _ := strconv.ParseFloat(q, 64)
					if !h.Supported(p) {
						break
					}
					tags := tags.With("quantile", q).With("one_in", strconv.FormatFloat(step*scale, 'g', 10, 64))
					b.add(f.run.metrics.curve, tags, ms(h.Quantile(p)))
				}
			}
		}
	}
}
