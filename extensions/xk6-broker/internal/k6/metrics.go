package k6

import (
	"errors"
	"fmt"
	"slices"

	"go.k6.io/k6/v2/ext"
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// brokerMetrics are the module's metrics. docs/metrics.md describes each.
type brokerMetrics struct {
	trends    [recording.NumTrends]*metrics.Metric
	quantiles [recording.NumTrends]*metrics.Metric
	counters  [recording.NumCounters]*metrics.Metric // nil for a counter that is part of another metric

	account map[string]*metrics.Metric // by the names of accountCounts

	settled, errors, marks        *metrics.Metric
	backlog, inFlight, valid, cpu *metrics.Metric
	curve                         *metrics.Metric
}

// accountCounts are the counters of an account.
var accountCounts = []string{"lost", "undelivered", "uncertain", "drained", "duplicated", "reordered", "redelivered"}

const prefix = "broker_"

func registerMetrics(r *metrics.Registry) (*brokerMetrics, error) {
	var errs []error
	register := func(name string, t metrics.MetricType, v ...metrics.ValueType) *metrics.Metric {
		registered, err := r.NewMetric(prefix+name, t, v...)
		if err != nil {
			errs = append(errs, fmt.Errorf("metric %s%s: %w", prefix, name, err))
		}
		return registered
	}
	m := &brokerMetrics{
		account:  map[string]*metrics.Metric{},
		settled:  register("settled", metrics.Counter),
		errors:   register("errors", metrics.Counter),
		marks:    register("marks", metrics.Counter),
		backlog:  register("backlog", metrics.Gauge),
		inFlight: register("in_flight", metrics.Gauge),
		valid:    register("valid", metrics.Gauge),
		cpu:      register("cpu", metrics.Gauge),
		curve:    register("curve", metrics.Gauge, metrics.Time),
	}
	for _, count := range accountCounts {
		m.account[count] = register(count, metrics.Counter)
	}
	for t := range recording.Trend(recording.NumTrends) {
		m.trends[t] = register(t.String(), metrics.Trend, metrics.Time)
		m.quantiles[t] = register(t.String()+"_quantile", metrics.Gauge, metrics.Time)
	}
	for c := range recording.Counter(recording.NumCounters) {
		switch {
		case c.Outcome() != "": // part of settled
		case c.Bytes():
			m.counters[c] = register(c.String(), metrics.Counter, metrics.Data)
		default:
			m.counters[c] = register(c.String(), metrics.Counter)
		}
	}
	return m, errors.Join(errs...)
}

// summarized reports whether k6's summary, which joins all samples of a metric in one line, shows a
// sample.
func (m *brokerMetrics) summarized(s *metrics.Sample) bool {
	switch s.Metric {
	case m.cpu, m.curve, m.marks: // one line is no summary of these
		return false
	case m.account["lost"], m.account["duplicated"], m.account["reordered"]:
		return true
	}
	return !slices.Contains(m.quantiles[:], s.Metric) && (s.Value != 0 || s.Metric.Type != metrics.Counter)
}

// usage is k6's list of the features that a test uses. Its type is in an internal package of k6.
type usage interface{ Map() map[string]any }

// stored reports whether k6 has an output. An unknown usage counts as one.
func stored(u usage) bool {
	if u == nil {
		return true
	}
	used := u.Map()
	if builtin, _ := used["outputs"].([]string); len(builtin) > 0 {
		return true
	}
	extensions, _ := used["extensions"].([]any)
	return slices.ContainsFunc(extensions, func(e any) bool {
		extension, ok := e.(*ext.Extension)
		return ok && extension.Type == ext.OutputExtension
	})
}

// push gives samples to k6: without an output only samples of its summary and of thresholds.
func (r *run) push(samples metrics.Samples) {
	state := r.state.Load()
	samples = slices.DeleteFunc(samples, func(s metrics.Sample) bool {
		asked := len(s.Metric.Thresholds.Thresholds)+len(s.Metric.Submetrics) > 0
		return !state.stored && !asked && !r.metrics.summarized(&s)
	})
	if len(samples) > 0 {
		state.give(samples)
	}
}

// give gives samples to k6, which closes their channel before the test's end if k6 panics.
func (s *testState) give(samples metrics.Samples) {
	defer func() { _ = recover() }() // the channel is closed
	s.samples <- samples
}
