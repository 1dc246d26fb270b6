package k6

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// quantiles are the quantiles of the gauges.
var quantiles = []struct {
	q    float64
	name string
}{{0.5, "0.5"}, {0.9, "0.9"}, {0.99, "0.99"}, {0.999, "0.999"}, {0.9999, "0.9999"}, {1, "1"}}

// flusher gives k6 the measurements of each second.
type flusher struct {
	run   *run
	halts []func()

	mu       sync.Mutex
	closed   bool
	trends   map[metrics.TimeSeries]*samples.Trend
	accounts map[engine.GroupKey]account.Account
	flushed  time.Time
}

func startFlusher(r *run) *flusher {
	f := &flusher{
		run: r, flushed: time.Now(),
		trends: map[metrics.TimeSeries]*samples.Trend{}, accounts: map[engine.GroupKey]account.Account{},
	}
	r.mark("start", f.flushed)
	ctx, cancel := context.WithCancel(r.interrupted)
	// Backlogs have their own goroutine, because a broker can be slow to answer.
	f.halts = []func(){
		samples.Each(func(time.Time) { f.flush() }),
		cancel,
		samples.Each(func(now time.Time) { f.ask(ctx, now) }),
	}
	if r.output.on && r.output.meanwhile {
		f.halts = append(f.halts, r.keepMeanwhile())
	}
	return f
}

// halt stops the goroutines. The caller can call flush afterwards.
func (f *flusher) halt() {
	for _, halt := range f.halts {
		halt()
	}
}

// flush pushes the measurements since the last flush.
func (f *flusher) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.collect(f.measured(), false)
	f.run.push(b.Close())
}

// measured returns the measurements since the last call.
func (f *flusher) measured() []engine.Delta {
	deltas := f.run.collector.Collect()
	f.run.warnUnkept(f.run.collector.Save())
	return deltas
}

// begin begins a phase, and pushes the measurements of the one before.
func (f *flusher) begin(phase string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	deltas, err := f.run.collector.Begin(phase)
	if err != nil || deltas == nil {
		return err
	}
	b := f.collect(deltas, false)
	f.run.push(b.Close())
	f.run.remember("phase "+phase, b.Now)
	return nil
}

// last pushes the rest, makes the result and decides the thresholds by it.
func (f *flusher) last() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	rest := f.collect(f.measured(), true)
	f.run.push(rest.Close())
	f.run.mark("end", rest.Now) // before the thresholds
	result := f.run.buildResult()
	f.run.decide(result)
	f.run.end.final.Store(result)
	f.run.collector.Unwatch()
	b := &samples.Bundle{Now: rest.Now}
	b.Add(f.run.metrics.valid, f.run.state.Load().runTags, validity(result))
	f.fates(result, b)
	f.curves(result, b)
	f.run.push(b.Close())
}

// collect makes samples of measurements. The last call holds nothing back.
func (f *flusher) collect(measured []engine.Delta, last bool) *samples.Bundle {
	b := &samples.Bundle{From: f.flushed, Now: time.Now()}
	defer func() { f.flushed = b.End() }()
	for i, d := range measured {
		tags := tagsOf(d.Series.Labels)
		if d.Phase != "" {
			tags = tags.With(phaseTag, d.Phase)
		}
		f.counters(&d, tags, b)
		b.Shift = time.Duration(i)
		for l := range d.Trends {
			for t, interval := range d.Trends[l] {
				if interval != nil && interval.Count() > 0 {
					f.trend(recording.Trend(t), interval, trendTags(tags, recording.Trend(t), recording.Loop(l)), b)
				}
			}
		}
	}
	for series, trend := range f.trends {
		if last { // the rest of each trend
			b.Shift++
			b.Spread(series.Metric, series.Tags, trend.Take(&hist.Histogram{}, 0, true))
		}
	}
	f.accounting(b)
	b.Add(f.run.metrics.inFlight, f.run.state.Load().runTags, float64(f.run.InFlight()))
	b.Add(f.run.metrics.cpu, f.run.state.Load().runTags, f.run.collector.CPU())
	return b
}

// tagsOf returns the tags of a series.
func tagsOf(l engine.Labels) *metrics.TagSet {
	return named(l.Tags.(*metrics.TagSet), l.Driver, l.Topic, l.Group) //nolint:forcetypeassert // series sets it
}

// trendTags returns the tags of a trend of a series.
func trendTags(tags *metrics.TagSet, t recording.Trend, l recording.Loop) *metrics.TagSet {
	if t.Looped() {
		return tags.With("loop", l.String())
	}
	return tags
}

// named adds the tags driver, topic and consumer_group.
func named(tags *metrics.TagSet, driver, topic, group string) *metrics.TagSet {
	tags = tags.With("driver", driver).With("topic", tagValue(topic))
	if group != "" {
		tags = tags.With("consumer_group", tagValue(group))
	}
	return tags
}

// tagValue returns a name as InfluxDB's line protocol can write it: without line breaks, and
// without a backslash at the end.
func tagValue(name string) string {
	return strings.TrimRight(strings.NewReplacer("\r", " ", "\n", " ").Replace(name), `\`)
}

func (f *flusher) counters(d *engine.Delta, tags *metrics.TagSet, b *samples.Bundle) {
	m, state := f.run.metrics, f.run.state.Load().builtin
	for c, n := range d.Counters {
		if n == 0 {
			continue
		}
		c := recording.Counter(c)
		if outcome := c.Outcome(); outcome != "" {
			b.Count(m.settled, tags.With("outcome", outcome), float64(n))
			continue
		}
		b.Count(m.counters[c], tags, float64(n))
		switch c {
		case recording.BytesSent:
			b.Count(state.DataSent, tags, float64(n))
		case recording.BytesReceived:
			b.Count(state.DataReceived, tags, float64(n))
		}
	}
	for labels, n := range d.Errors {
		b.Count(m.errors, tags.With("op", labels.Op).With("kind", labels.Kind), float64(n))
	}
}

// trend adds an interval of a trend: samples within the budget, and exact quantiles as gauges.
func (f *flusher) trend(t recording.Trend, interval *hist.Histogram, tags *metrics.TagSet, b *samples.Bundle) {
	for _, q := range quantiles {
		if q.q == 1 || interval.Supported(q.q) {
			b.Add(f.run.metrics.quantiles[t], tags.With("quantile", q.name), ms(interval.Quantile(q.q)))
		}
	}
	series := metrics.TimeSeries{Metric: f.run.metrics.trends[t], Tags: tags}
	trend := f.trends[series]
	if trend == nil {
		trend = &samples.Trend{Budget: f.run.state.Load().budget}
		f.trends[series] = trend
	}
	b.Spread(series.Metric, tags, trend.Take(interval, f.run.peak.Load(), false))
}

// accounting adds the counts of each group since the last call.
func (f *flusher) accounting(b *samples.Bundle) {
	m := f.run.metrics
	for key, a := range f.run.Counts() {
		before := f.accounts[key]
		f.accounts[key] = a
		tags := named(f.run.state.Load().runTags, key.Driver, key.Topic, key.Group)
		b.Count(m.account["duplicated"], tags, float64(a.Duplicated-before.Duplicated))
		if !a.Unordered {
			b.Count(m.account["reordered"], tags, float64(a.Reordered-before.Reordered))
		}
		b.Count(m.account["redelivered"], tags, float64(a.Redelivered-before.Redelivered))
	}
}

// fates adds the fates of the messages, at the end.
func (f *flusher) fates(r *result.Result, b *samples.Bundle) {
	m := f.run.metrics
	for _, t := range r.Topics {
		for _, g := range t.Groups {
			tags := named(f.run.state.Load().runTags, t.Driver, t.Topic, g.Group)
			b.Count(m.account["lost"], tags, float64(g.Lost))
			b.Count(m.account["uncertain"], tags, float64(g.Uncertain))
			if g.Group == account.ReadBack {
				continue
			}
			b.Count(m.account["undelivered"], tags, float64(g.Undelivered))
			b.Count(m.account["drained"], tags, float64(g.Drained))
			b.Count(m.counters[recording.Corrupted], tags, 0) // a zero is shown
		}
	}
}

// ask reads the backlogs from the brokers and pushes them.
func (f *flusher) ask(ctx context.Context, now time.Time) {
	b := &samples.Bundle{Now: now}
	for key, n := range f.run.Backlogs(ctx) {
		b.Shift++ // two brokers may have groups and topics of one name
		tags := named(f.run.state.Load().runTags, key.Driver, key.Topic, key.Group)
		b.Add(f.run.metrics.backlog, tags, float64(n))
	}
	f.run.push(b.Close())
}
