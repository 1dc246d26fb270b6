package js

import (
	"context"
	"strings"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/thin"
)

// flushEvery is how often k6 gets what was measured. k6's outputs would store a point for each sample, so everything is
// summed up first.
const flushEvery = time.Second

// quantiles are those that the gauges carry.
var quantiles = []struct {
	q    float64
	name string
}{{0.5, "0.5"}, {0.9, "0.9"}, {0.99, "0.99"}, {0.999, "0.999"}, {0.9999, "0.9999"}, {1, "1"}}

// flusher gives k6 once a second what was measured since.
type flusher struct {
	run     *run
	stop    context.CancelFunc
	done    chan struct{}
	watched chan struct{}

	tags     map[load.Labels]*metrics.TagSet
	thinners map[thinnerKey]*thin.Trend
	accounts map[load.GroupKey]load.Accounting
	flushed  time.Time
}

type thinnerKey struct {
	series *load.Series
	loop   load.Loop
	trend  load.Trend
}

func startFlusher(r *run) *flusher {
	ctx, cancel := context.WithCancel(context.Background())
	f := &flusher{
		run: r, stop: cancel, done: make(chan struct{}), watched: make(chan struct{}),
		tags: map[load.Labels]*metrics.TagSet{}, thinners: map[thinnerKey]*thin.Trend{},
		accounts: map[load.GroupKey]load.Accounting{}, flushed: time.Now(),
	}
	r.mark("start", f.flushed)
	go f.loop(ctx)
	go f.watchBacklogs(ctx)
	return f
}

func (f *flusher) loop(ctx context.Context) {
	defer close(f.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.flush()
		case <-ctx.Done():
			return
		}
	}
}

// halt ends the loops; flush may be called by its caller afterwards.
func (f *flusher) halt() {
	f.stop()
	<-f.done
	<-f.watched
}

// flush pushes everything since the last flush.
func (f *flusher) flush() {
	b := f.collect(false)
	f.run.push(b.close())
}

// last pushes the rest, and what is known only now: it makes the result, once, and decides the thresholds by it.
func (f *flusher) last() {
	rest := f.collect(true)
	f.run.push(rest.close())
	f.run.mark("end", rest.now) // thresholds may be on it
	result := f.run.buildResult()
	f.run.decide(result)
	f.run.final.Store(result)
	f.run.collector.Unwatch()
	b := &bundle{now: rest.now}
	valid := 0.0
	if result.Verdict.Valid {
		valid = 1
	}
	b.add(f.run.metrics.valid, f.run.state.Load().runTags, valid)
	f.curves(result, b)
	f.run.push(b.close())
}

// collect gathers what was measured since the last time; the last time holds nothing back.
func (f *flusher) collect(last bool) *bundle {
	b := &bundle{from: f.flushed, now: time.Now(), sums: map[metrics.TimeSeries]float64{}}
	f.flushed = b.now
	for i, d := range f.run.collector.Collect() {
		tags := f.tagsOf(d.Labels)
		f.counters(&d, tags, b)
		b.shift = time.Duration(i)
		for l := range d.Trends {
			for t, interval := range d.Trends[l] {
				f.trend(thinnerKey{d.Series, load.Loop(l), load.Trend(t)}, interval, tags, last, b)
			}
		}
	}
	f.accounting(last, b)
	b.add(f.run.metrics.inFlight, f.run.state.Load().runTags, float64(f.run.InFlight()))
	b.add(f.run.metrics.cpu, f.run.state.Load().runTags, f.run.collector.CPU())
	return b
}

// bundle is what one flush gives to k6. InfluxDB knows a point by metric, tags and time, so no two samples are alike in all three.
type bundle struct {
	from    time.Time // the end of the bundle before, so that what is spread over the time between does not meet what that one spread
	now     time.Time
	shift   time.Duration // of the present series, against those with the same tags
	samples metrics.Samples
	sums    map[metrics.TimeSeries]float64
}

func (b *bundle) count(m *metrics.Metric, tags *metrics.TagSet, n float64) {
	b.sums[metrics.TimeSeries{Metric: m, Tags: tags}] += n
}

func (b *bundle) add(m *metrics.Metric, tags *metrics.TagSet, v float64) {
	b.addAt(m, tags, b.now, v)
}

func (b *bundle) addAt(m *metrics.Metric, tags *metrics.TagSet, at time.Time, v float64) {
	b.samples = append(b.samples, metrics.Sample{
		TimeSeries: metrics.TimeSeries{Metric: m, Tags: tags}, Time: at.Add(b.shift), Value: v,
	})
}

func (b *bundle) close() metrics.Samples {
	at := b.now
	for series, n := range b.sums {
		// Each its own time, also where the tags differ: an output may be told to store some of the tags as fields.
		at = at.Add(1)
		b.samples = append(b.samples, metrics.Sample{TimeSeries: series, Time: at, Value: n})
	}
	return b.samples
}

func (f *flusher) tagsOf(l load.Labels) *metrics.TagSet {
	tags, ok := f.tags[l]
	if !ok {
		tags = tagsOf(l)
		f.tags[l] = tags
	}
	return tags
}

// tagsOf are the tags of what a series measures.
func tagsOf(l load.Labels) *metrics.TagSet {
	return named(l.Tags.(*metrics.TagSet), l.Driver, l.Topic, l.Group) //nolint:forcetypeassert // this package puts it there
}

// trendTags are those of a trend of a series, made of the series' own.
func trendTags(tags *metrics.TagSet, t load.Trend, l load.Loop) *metrics.TagSet {
	if t.Looped() {
		return tags.With("loop", l.String())
	}
	return tags
}

// named adds to tags the names of what was measured.
func named(tags *metrics.TagSet, driver, topic, group string) *metrics.TagSet {
	tags = tags.With("driver", driver).With("topic", tagValue(topic))
	if group != "" {
		tags = tags.With("consumer_group", tagValue(group))
	}
	return tags
}

// tagValue is a name as a tag can have it: InfluxDB's line protocol knows no way to write a line break, nor a backslash at the end.
func tagValue(name string) string {
	return strings.TrimRight(strings.NewReplacer("\r", " ", "\n", " ").Replace(name), `\`)
}

func (f *flusher) counters(d *load.Delta, tags *metrics.TagSet, b *bundle) {
	m, state := f.run.metrics, f.run.state.Load().builtin
	for c, n := range d.Counters {
		if n == 0 {
			continue
		}
		switch c := load.Counter(c); c {
		case load.Acked:
			b.count(m.settled, tags.With("outcome", "ack"), float64(n))
		case load.Requeued:
			b.count(m.settled, tags.With("outcome", "requeue"), float64(n))
		case load.Rejected:
			b.count(m.settled, tags.With("outcome", "reject"), float64(n))
		default:
			b.count(m.counters[c], tags, float64(n))
			if c == load.BytesSent {
				b.count(state.DataSent, tags, float64(n))
			}
			if c == load.BytesReceived {
				b.count(state.DataReceived, tags, float64(n))
			}
		}
	}
	for labels, n := range d.Errors {
		b.count(m.errors, tags.With("op", labels.Op).With("kind", string(labels.Kind)), float64(n))
	}
}

// trend passes on an interval of a trend: samples within the budget, and exact quantiles as gauges.
func (f *flusher) trend(key thinnerKey, interval *hist.Histogram, tags *metrics.TagSet, last bool, b *bundle) {
	th := f.thinners[key]
	if th == nil {
		if interval == nil {
			return
		}
		th = &thin.Trend{Budget: f.run.state.Load().budget}
		f.thinners[key] = th
	}
	tags = trendTags(tags, key.trend, key.loop)
	if interval != nil {
		for _, q := range quantiles {
			if q.q == 1 || interval.Supported(q.q) {
				b.add(f.run.metrics.quantiles[key.trend], tags.With("quantile", q.name), ms(interval.Quantile(q.q)))
			}
		}
	}
	values := th.Take(interval, f.run.expected(), last)
	step := max(1, b.now.Sub(b.from)/time.Duration(len(values)+1)) // each its own time, or InfluxDB would keep one of them
	for i, v := range values {
		b.addAt(f.run.metrics.trends[key.trend], tags, b.from.Add(time.Duration(i+1)*step), ms(v))
	}
}

// accounting passes on what the accounting of each group has found since the last time; what is lost is known at the end.
func (f *flusher) accounting(last bool, b *bundle) {
	m := f.run.metrics
	for key, a := range f.run.Accounts() {
		before := f.accounts[key]
		f.accounts[key] = a
		tags := named(f.run.state.Load().runTags, key.Driver, key.Topic, key.Group)
		b.count(m.duplicated, tags, float64(a.Duplicated-before.Duplicated))
		b.count(m.reordered, tags, float64(a.Reordered-before.Reordered))
		b.count(m.redelivered, tags, float64(a.Redelivered-before.Redelivered))
		if last {
			b.count(m.lost, tags, float64(a.Lost))
			b.count(m.undelivered, tags, float64(a.Undelivered))
			b.count(m.uncertain, tags, float64(a.Uncertain))
			b.count(m.drained, tags, float64(a.Drained))
			b.count(m.counters[load.Corrupted], tags, 0) // that there was none is worth saying
		}
	}
}

// watchBacklogs asks the brokers for their backlogs once a second and passes them on. It has a goroutine of its own, for a broker may
// take its time to answer.
func (f *flusher) watchBacklogs(ctx context.Context) {
	defer close(f.watched)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			b := &bundle{now: now}
			for key, n := range f.run.Backlogs(ctx) {
				b.shift++ // two brokers may have groups and topics of one name
				tags := named(f.run.state.Load().runTags, key.Driver, key.Topic, key.Group)
				b.add(f.run.metrics.backlog, tags, float64(n))
			}
			f.run.push(b.samples)
		}
	}
}
