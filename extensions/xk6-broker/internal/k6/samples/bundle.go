package samples

import (
	"time"

	"go.k6.io/k6/v2/metrics"
)

// Interval is how often k6 gets what was measured. Its outputs would store a point for each sample, so everything is summed up first.
const Interval = time.Second

// Each calls flush at the end of each interval, which is a whole second of the clock, in a goroutine of its own, until halt is called, which waits for it.
func Each(flush func(now time.Time)) (halt func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case now := <-time.After(time.Until(time.Now().Truncate(Interval).Add(Interval))):
				flush(now)
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}

// Bundle is what one flush gives to k6. InfluxDB knows a point by metric, tags and time, so no two samples are alike in all three.
type Bundle struct {
	From  time.Time     // the [Bundle.End] of the one before
	Now   time.Time     // its own end
	Shift time.Duration // of the present series, against those with the same tags

	samples metrics.Samples
	sums    map[metrics.TimeSeries]float64
	last    time.Time // of what was spread
}

// raster keeps the values of series apart that are spread over the same time: all of them are on it, each series shifted by its own few ns.
const raster = 1 << 16 * time.Nanosecond

// End is where the next bundle begins, so that what it spreads does not meet what this one spread.
func (b *Bundle) End() time.Time {
	if b.last.After(b.Now) {
		return b.last
	}
	return b.Now
}

// Count adds to a counter.
func (b *Bundle) Count(m *metrics.Metric, tags *metrics.TagSet, n float64) {
	if b.sums == nil {
		b.sums = map[metrics.TimeSeries]float64{}
	}
	b.sums[metrics.TimeSeries{Metric: m, Tags: tags}] += n
}

// Add gives a value as it is now.
func (b *Bundle) Add(m *metrics.Metric, tags *metrics.TagSet, v float64) { b.add(m, tags, b.Now, v) }

// Spread gives the values of a trend, in ns, as k6 has them, in ms, each at a time of its own within the bundle's.
func (b *Bundle) Spread(m *metrics.Metric, tags *metrics.TagSet, values []int64) {
	step := max(raster, b.Now.Sub(b.From)/time.Duration(len(values)+1))
	for i, v := range values {
		at := b.From.Add(time.Duration(i+1) * step).Truncate(raster)
		b.add(m, tags, at, float64(v)/float64(time.Millisecond))
		if at.After(b.last) {
			b.last = at
		}
	}
}

func (b *Bundle) add(m *metrics.Metric, tags *metrics.TagSet, at time.Time, v float64) {
	b.samples = append(b.samples, metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: m, Tags: tags}, Time: at.Add(b.Shift), Value: v})
}

// Close gives all of it.
func (b *Bundle) Close() metrics.Samples {
	at := b.Now
	for series, n := range b.sums {
		// Each its own time, also where the tags differ: an output may be told to store some of the tags as fields.
		at = at.Add(1)
		b.samples = append(b.samples, metrics.Sample{TimeSeries: series, Time: at, Value: n})
	}
	return b.samples
}
