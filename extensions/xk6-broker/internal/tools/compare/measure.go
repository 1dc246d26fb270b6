package compare

import (
	"cmp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// trends are those that a comparison shows, in its order: first those that a run is about, what went through and what was lost, then what
// they are made of, and at the end what the load generator did.
var trends = []recording.Trend{
	recording.E2ELatency, recording.PublishLatency, recording.RequestLatency,
	recording.E2ETime, recording.DeliveryWait, recording.PublishTime, recording.RequestTime, recording.FailedLatency, recording.SettleTime, recording.RedeliveryTime,
	recording.ScheduleLag, recording.GeneratorLag,
}

// foremost is how many of them stand before the rates.
const foremost = 3

// columns are those of each trend.
var columns = []string{"p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max"}

// Rates of what the broker did, and of what was asked of it.
var (
	done  = []string{"confirmed", "received"}
	asked = []string{"sent"}
)

// measures are all that a comparison shows.
func measures() []measure.Measure {
	var all []measure.Measure
	latencies := func(trends []recording.Trend) {
		for _, t := range trends {
			for _, stat := range columns {
				m, _ := measure.Latency(t.String(), stat) // the tables hold no mistake
				all = append(all, m)
			}
		}
	}
	latencies(trends[:foremost])
	for _, name := range done {
		all = append(all, measure.Rate(name))
	}
	for _, name := range measure.Flaws {
		all = append(all, measure.Count(name))
	}
	latencies(trends[foremost:])
	for _, name := range asked {
		all = append(all, measure.Rate(name))
	}
	return all
}

// doubts gives why any of the repetitions may know less than the truth, and why more.
func doubts(m measure.Measure, topics []*result.Topic) (low, high string) {
	for _, t := range topics {
		if _, err := m.Of(t); err != nil {
			continue
		}
		below, above := m.Doubt(t)
		low, high = cmp.Or(low, below), cmp.Or(high, above)
	}
	return low, high
}

// values reads a measure from every repetition that knows it, and the first reason of one that does not.
func values(m measure.Measure, topics []*result.Topic) (values []float64, reason error) {
	for _, t := range topics {
		v, err := m.Of(t)
		switch {
		case err == nil:
			values = append(values, v)
		case reason == nil:
			reason = err
		}
	}
	return values, reason
}
