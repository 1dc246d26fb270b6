package samples

import (
	"time"

	"go.k6.io/k6/v2/metrics"
)

// Interval is the time between two bundles. k6's outputs store a point for each sample.
const Interval = time.Second

// Each calls flush at each whole second of the clock, in a goroutine that halt stops and waits for.
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

// Bundle is the samples of one flush. No two have the same metric, tags and time, which identify a
// point in InfluxDB.
type Bundle struct {
	From  time.Time     // the [Bundle.End] of the one before
	Now   time.Time     // its own end
	Shift time.Duration // of the series, against others with the same tags

	samples metrics.Samples
	sums    map[metrics.TimeSeries]float64
	last    time.Time // of the spread values
}

// raster is the unit of times of spread values, so that the shift of a series keeps them apart.
const raster = 1 << 16 * time.Nanosecond

// End returns the start of the next bundle: after the last spread value.
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

// Add adds a value at the end of the bundle.
func (b *Bundle) Add(m *metrics.Metric, tags *metrics.TagSet, v float64) { b.add(m, tags, b.Now, v) }

// Spread adds values of a trend, in ns, at times spread over the bundle.
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
	b.samples = append(
		b.samples,
		metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: m, Tags: tags}, Time: at.Add(b.Shift), Value: v},
	)
}

// Close returns the samples.
func (b *Bundle) Close() metrics.Samples {
	at := b.Now
	for series, n := range b.sums {
		// Each has its own time, because an output can store tags as fields.
		at = at.Add(1)
		b.samples = append(b.samples, metrics.Sample{TimeSeries: series, Time: at, Value: n})
	}
	return b.samples
}
