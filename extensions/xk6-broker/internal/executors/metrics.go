package executors

import (
	"fmt"
	"time"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/k6/samples"
)

// Metrics are the executor's metrics.
type Metrics struct {
	Wait     *metrics.Metric // from due to the start of the iteration
	Length   *metrics.Metric // arrivals that are due and not started
	Arrivals *metrics.Metric // that were due
	Unserved *metrics.Metric // that never started
}

// RegisterMetrics makes the metrics, or finds them where they have been made. k6 knows thresholds only on metrics that are there when
// the script has been read, before there is an executor; a JavaScript module can register them in time.
func RegisterMetrics(r *metrics.Registry) (*Metrics, error) {
	m := &Metrics{}
	for _, d := range []struct {
		metric **metrics.Metric
		name   string
		kind   metrics.MetricType
		values metrics.ValueType
	}{
		{&m.Wait, "broker_queue_wait", metrics.Trend, metrics.Time},
		{&m.Length, "broker_queue_length", metrics.Gauge, metrics.Default},
		{&m.Arrivals, "broker_arrivals", metrics.Counter, metrics.Default},
		{&m.Unserved, "broker_arrivals_unserved", metrics.Counter, metrics.Default},
	} {
		var err error
		if *d.metric, err = r.NewMetric(d.name, d.kind, d.values); err != nil {
			return nil, fmt.Errorf("metric %s: %w", d.name, err)
		}
	}
	return m, nil
}

// flusher gives k6 once a second what the tally has counted since.
type flusher struct {
	*Metrics
	tally *tally
	out   chan<- metrics.SampleContainer
	trend samples.Trend
	last  ScenarioTotals
	at    time.Time // of the last flush
	halt  func()
}

// Planned is how long a test may last, by its scenarios; those of consumers end when the others are over.
func Planned(es *lib.ExecutionState) time.Duration {
	longest, _ := lib.GetEndOffset(es.Test.Options.Scenarios.GetFullExecutionRequirements(es.ExecutionTuple))
	return longest
}

// startFlusher begins to give k6 what is measured, as many samples of the wait each interval as the budget says.
func startFlusher(m *Metrics, t *tally, out chan<- metrics.SampleContainer, budget uint64) *flusher {
	f := &flusher{
		trend:   samples.Trend{Budget: budget},
		Metrics: m, tally: t, out: out, last: ScenarioTotals{Lag: &hist.Histogram{}}, at: time.Now(),
	}
	f.halt = samples.Each(func(time.Time) { f.flush(false) })
	return f
}

// finish gives k6 the rest.
func (f *flusher) finish() {
	f.halt()
	f.flush(true)
}

// flush gives k6 an interval. k6 takes samples until after all executors have returned, also of a test that is interrupted.
func (f *flusher) flush(last bool) {
	b := &samples.Bundle{From: f.at, Now: time.Now()}
	t, tags := f.tally.totals(), f.tally.tags
	b.Add(f.Arrivals, tags, float64(t.Due-f.last.Due))
	b.Add(f.Length, tags, float64(t.Due-t.Started))
	if last {
		b.Add(f.Unserved, tags, float64(t.Unserved))
	}
	interval := t.Lag.Sub(f.last.Lag)
	if interval.Count() == 0 {
		interval = nil
	}
	b.Spread(f.Wait, tags, f.trend.Take(interval, 0, last))
	if last {
		f.tally.passed.Store(f.trend.Passed())
	}
	f.last, f.at = t, b.End()
	f.out <- b.Close()
}
