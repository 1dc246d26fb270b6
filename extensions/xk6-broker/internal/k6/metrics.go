package k6

import (
	"fmt"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// brokerMetrics are the module's metrics, by what they are in the engine. docs/metrics.md describes each.
type brokerMetrics struct {
	trends    [recording.NumTrends]*metrics.Metric
	quantiles [recording.NumTrends]*metrics.Metric
	counters  [recording.NumCounters]*metrics.Metric // nil for those that have no metric of their own

	settled, errors                    *metrics.Metric
	lost, undelivered                  *metrics.Metric
	uncertain, drained                 *metrics.Metric
	duplicated, reordered, redelivered *metrics.Metric
	backlog, inFlight, valid, cpu      *metrics.Metric
	curve, marks                       *metrics.Metric

	tagged map[*metrics.Metric]bool // those whose values mean something only tag by tag, or beside one another over time
	atZero map[*metrics.Metric]bool // counters whose zero is worth saying
}

const prefix = "broker_"

func registerMetrics(r *metrics.Registry) (*brokerMetrics, error) {
	m := &brokerMetrics{}
	var firstErr error
	register := func(name string, t metrics.MetricType, v ...metrics.ValueType) *metrics.Metric {
		registered, err := r.NewMetric(prefix+name, t, v...)
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("metric %s: %w", prefix+name, err)
		}
		return registered
	}
	for t := range recording.Trend(recording.NumTrends) {
		m.trends[t] = register(t.String(), metrics.Trend, metrics.Time)
		m.quantiles[t] = register(t.String()+"_quantile", metrics.Gauge, metrics.Time)
	}
	for c := range recording.Counter(recording.NumCounters) {
		switch {
		case c.Outcome() != "": // of settled
		case c.Bytes():
			m.counters[c] = register(c.String(), metrics.Counter, metrics.Data)
		default:
			m.counters[c] = register(c.String(), metrics.Counter)
		}
	}
	m.settled = register("settled", metrics.Counter)
	m.errors = register("errors", metrics.Counter)
	m.lost = register("lost", metrics.Counter)
	m.undelivered = register("undelivered", metrics.Counter)
	m.uncertain = register("uncertain", metrics.Counter)
	m.drained = register("drained", metrics.Counter)
	m.duplicated = register("duplicated", metrics.Counter)
	m.reordered = register("reordered", metrics.Counter)
	m.redelivered = register("redelivered", metrics.Counter)
	m.backlog = register("backlog", metrics.Gauge)
	m.inFlight = register("in_flight", metrics.Gauge)
	m.valid = register("valid", metrics.Gauge)
	m.cpu = register("cpu", metrics.Gauge)
	m.curve = register("curve", metrics.Gauge, metrics.Time)
	m.marks = register("marks", metrics.Counter)
	m.tagged = map[*metrics.Metric]bool{m.cpu: true, m.curve: true, m.marks: true}
	for _, q := range m.quantiles {
		m.tagged[q] = true
	}
	m.atZero = map[*metrics.Metric]bool{m.lost: true, m.duplicated: true, m.reordered: true}
	return m, firstErr
}
