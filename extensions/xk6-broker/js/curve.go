package js

import (
	"strconv"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// curveSteps divide a decade of the curve evenly on a logarithmic axis, in numbers that people use: two is the median, ten is p90,
// twenty is p95.
var curveSteps = []float64{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8} //nolint:gochecknoglobals // a table

// curveDecades is how far the curve goes at most: to one value in ten million.
const curveDecades = 7

// curvePoint is a place on the axis of a curve.
type curvePoint struct {
	q               float64
	quantile, oneIn string // the tags
}

// curvePoints are all there can be, ascending.
//
//nolint:gochecknoglobals // a table
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
	for t := range load.Trend(load.NumTrends) {
		trends = append(trends, t.String())
		if t.Looped() {
			trends = append(trends, t.String()+load.ClosedSuffix)
		}
	}
	for _, p := range curvePoints {
		quantiles, oneIn = append(quantiles, p.quantile), append(oneIn, p.oneIn)
	}
	return tagging{own: map[string][]string{"driver": nil, "topic": nil, "trend": trends, "quantile": quantiles, "one_in": oneIn}}
}

// eachPoint gives the points of the percentile curves of a topic, as far as the samples of each trend support it, with their tags. The
// tag one_in is the curve's axis: one value in so many is greater.
func (r *run) eachPoint(topic *load.TopicResult, do func(trend string, p curvePoint, tags *metrics.TagSet)) {
	tags := r.state.Load().runTags.With("driver", topic.Driver).With("topic", tagValue(topic.Topic))
	for trend, h := range topic.Trends {
		tags := tags.With("trend", trend)
		for _, p := range curvePoints {
			if !h.Supported(p.q) {
				break
			}
			do(trend, p, tags.With("quantile", p.quantile).With("one_in", p.oneIn))
		}
	}
}

// curves passes on the percentile curve of the whole run of each trend of each topic.
func (f *flusher) curves(result *load.Result, b *bundle) {
	for i := range result.Topics {
		topic := &result.Topics[i]
		b.shift = time.Duration(i) // two brokers may have topics of one name
		f.run.eachPoint(topic, func(trend string, p curvePoint, tags *metrics.TagSet) {
			b.add(f.run.metrics.curve, tags, ms(topic.Trends[trend].Quantile(p.q)))
		})
	}
}
