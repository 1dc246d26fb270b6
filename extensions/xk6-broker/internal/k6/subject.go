package k6

import (
	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// subject is a metric that a test may set thresholds on.
type subject struct {
	metric *metrics.Metric
	tags   tagging
	decide decider
	by     decidedBy
}

// decidedBy says whose decision it is in the end.
type decidedBy bool

const (
	byModule decidedBy = false
	byK6     decidedBy = true // what k6 has of the metric is exact: where it can be judged, k6 comes to the same
)

// subjects lists the metrics.
func subjects(m *brokerMetrics, queue *executors.Metrics) []subject {
	whole := tagging{own: map[string][]string{}}
	group := whole.with("driver").with("topic").with("consumer_group")
	sender := tagging{own: map[string][]string{"driver": nil, "topic": nil, phaseTag: nil}, vus: true}
	consumer := sender.with("consumer_group")

	all := []subject{
		{m.lost, group, accountCount("lost"), byModule},
		{m.undelivered, group, accountCount("undelivered"), byModule},
		{m.uncertain, group, accountCount("uncertain"), byModule},
		{m.drained, group, accountCount("drained"), byModule},
		{m.duplicated, group, accountCount("duplicated"), byModule},
		{m.reordered, group, accountCount("reordered"), byModule},
		{m.redelivered, group, accountCount("redelivered"), byModule},
		{m.settled, consumer.with("outcome", "ack", "requeue", "reject"), counter(m.settled, "outcome"), byK6},
		{m.errors, consumer.with("op").with("kind", kinds...), counter(m.errors, "op", "kind"), byK6},
		{m.backlog, group, gauge(m.backlog), byK6},
		{m.inFlight, whole, gauge(m.inFlight), byK6},
		{m.cpu, whole, gauge(m.cpu), byK6},
		{m.valid, whole, (*judge).valid, byModule},
		{m.curve, curveTagging(), (*judge).curve, byModule},
		{m.marks, whole.with("mark"), counter(m.marks, "mark"), byK6},
	}
	for t := range recording.Trend(recording.NumTrends) {
		tags := sender
		if t.Consumers() {
			tags = consumer
		}
		if t.Looped() {
			tags = tags.with("loop", recording.Open.String(), recording.Closed.String())
		}
		var shown []string
		for _, q := range quantiles {
			shown = append(shown, q.name)
		}
		all = append(all, subject{m.trends[t], tags, latency(t), byModule},
			subject{m.quantiles[t], tags.with("quantile", shown...), quantile(m.quantiles[t]), byK6})
	}
	for c, its := range m.counters {
		switch c := recording.Counter(c); {
		case its == nil:
		case c == recording.Corrupted:
			all = append(all, subject{its, consumer, corrupted(its), byK6})
		case c == recording.Due, c == recording.Sent, c == recording.Confirmed, c == recording.Blocked, c == recording.Unaccounted, c.Requesters():
			all = append(all, subject{its, sender, counter(its), byK6})
		default:
			all = append(all, subject{its, consumer, counter(its), byK6})
		}
	}
	scenario := whole.with("scenario")
	return append(all,
		subject{queue.Wait, scenario, (*judge).wait, byModule}, subject{queue.Length, scenario, (*judge).queue, byK6},
		subject{queue.Arrivals, scenario, arrivalCount(func(t executors.ScenarioTotals) uint64 { return t.Due }), byK6},
		subject{queue.Unserved, scenario, arrivalCount(func(t executors.ScenarioTotals) uint64 { return t.Unserved }), byK6})
}

// kinds are those of errors.
var kinds = []string{
	string(driver.Timeout), string(driver.Disconnected), string(driver.Throttled), string(driver.Rejected), string(driver.NotFound),
	string(driver.Denied), string(driver.Unsupported), string(driver.Closed), string(driver.Canceled), string(driver.Unknown),
}
