package k6

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// curveSteps divide a decade of the curve evenly on a logarithmic axis, in numbers that people use: two is the median, ten is p90,
// twenty is p95.
var curveSteps = []float64{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8}

// curveDecades is how far the curve goes at most: to one value in ten million.
const curveDecades = 7

// curvePoint is a place on the axis of a curve.
type curvePoint struct {
	q               float64
	quantile, oneIn string // the tags
}

// curvePoints are all there can be, ascending.
var curvePoints = func() (points []curvePoint) {
	for decade, scale := 0, 1.0; decade < curveDecades; decade, scale = decade+1, scale*10 {
		for _, step := range curveSteps {
			// As it is written in decimal, for the rank of a quantile is exact.
			text := strconv.FormatFloat(1-1/(step*scale), 'g', decade+4, 64)
			q, _ := strconv.ParseFloat(text, 64)
			points = append(points, curvePoint{q, text, strconv.FormatFloat(step*scale, 'g', 10, 64)})
		}
	}
	return points
}()

// curveTagging is which tags the points have.
func curveTagging() tagging {
	var trends, quantiles, oneIn []string
	for t := range recording.Trend(recording.NumTrends) {
		trends = append(trends, t.String())
	}
	for _, p := range curvePoints {
		quantiles, oneIn = append(quantiles, p.quantile), append(oneIn, p.oneIn)
	}
	return tagging{own: map[string][]string{
		"driver": nil, "topic": nil, "consumer_group": nil, "trend": trends, "loop": {recording.Open.String(), recording.Closed.String()},
		"quantile": quantiles, "one_in": oneIn,
	}}
}

// curve is the percentile curve of a trend of a topic, in one loop; of one group of its consumers or, where several have it, of all of
// them together too.
type curve struct {
	trend, loop, group string // loop is "" for a trend that is of none
	name               string // of the trend, as the topic calls it
	values             *hist.Histogram
}

// curvesOf lists the curves of a topic. Of those that a threshold may mean, the last is the one that it does: closed loops come before open
// ones, and groups before all together.
func curvesOf(topic *result.Topic) (all []curve) {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(topic.Trends))) { // a closed loop's name is the longer one
		trend, loop := topic.Loop(name)
		most := uint64(0)
		for _, g := range topic.Groups {
			if h := g.Trends[name]; h != nil {
				all = append(all, curve{trend, loop, g.Group, name, h})
				most = max(most, h.Count())
			}
		}
		if h := topic.Trends[name]; h.Count() > most {
			all = append(all, curve{trend, loop, "", name, h})
		}
	}
	return all
}

// eachPoint gives the points of the percentile curves of a topic, as far as the samples of each support it, with their tags. The tag
// one_in is the curve's axis: one value in so many is greater.
func (r *run) eachPoint(topic *result.Topic, do func(c curve, p curvePoint, tags *metrics.TagSet)) {
	for _, c := range curvesOf(topic) {
		tags := named(r.state.Load().runTags.With("trend", c.trend), topic.Driver, topic.Topic, c.group)
		if c.loop != "" {
			tags = tags.With("loop", c.loop)
		}
		for _, p := range curvePoints {
			if !c.values.Supported(p.q) {
				break // nor is any that follows
			}
			do(c, p, tags.With("quantile", p.quantile).With("one_in", p.oneIn))
		}
	}
}

// curves passes on the percentile curves of the whole run.
func (f *flusher) curves(result *result.Result, b *samples.Bundle) {
	for i := range result.Topics {
		topic := &result.Topics[i]
		b.Shift = time.Duration(i) // two brokers may have topics of one name
		f.run.eachPoint(topic, func(c curve, p curvePoint, tags *metrics.TagSet) {
			b.Add(f.run.metrics.curve, tags, ms(c.values.Quantile(p.q)))
		})
	}
}
