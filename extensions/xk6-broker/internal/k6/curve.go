package k6

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// curveSteps divide a decade of the curve evenly on a logarithmic axis: 2 is the median, 10 is p90,
// 20 is p95.
var curveSteps = []float64{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8}

// curveDecades is the length of a curve: to one value in ten million.
const curveDecades = 7

// curvePoint is a point on the axis of a curve.
type curvePoint struct {
	q               float64
	quantile, oneIn string // the tags
}

// curvePoints are all points, ascending.
var curvePoints = func() (points []curvePoint) {
	for decade, scale := 0, 1.0; decade < curveDecades; decade, scale = decade+1, scale*10 {
		for _, step := range curveSteps {
			// The quantile is rounded as its decimal text, because its rank is exact.
			text := strconv.FormatFloat(1-1/(step*scale), 'g', decade+4, 64)
			q, _ := strconv.ParseFloat(text, 64)
			points = append(points, curvePoint{q, text, strconv.FormatFloat(step*scale, 'g', 10, 64)})
		}
	}
	return points
}()

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
			for _, p := range curvePoints {
				if c.values.Supported(p.q) {
					b.Add(f.run.metrics.curve, tags.With("quantile", p.quantile).With("one_in", p.oneIn), ms(c.values.Quantile(p.q)))
				}
			}
		}
	}
}
