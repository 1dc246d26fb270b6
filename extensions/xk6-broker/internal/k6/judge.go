package k6

import (
	"sync"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// judge decides conditions on the metrics of the module by what the run found out.
type judge struct {
	run    *run
	result *result.Result

	series map[string]map[*engine.Series]*engine.Measured // by phase, "" for the whole run; what was measured is final
}

// decider decides a condition on a metric, or on the part of it that has the tags asked for.
type decider = func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision

// latency is for a trend of the engine: exact, by its histograms.
func latency(t recording.Trend) decider {
	return func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision {
		var portions []verdict.Portion
		in, why := j.portion(asked)
		if why != "" {
			return verdict.Undecided("%s", why)
		}
		for _, s := range j.run.All() {
			for l := range recording.Loop(recording.NumLoops) {
				if !trendTags(tagsOf(s.Labels), t, l).Contains(in.tags) {
					continue
				}
				of := in.measured(s)
				portions = append(portions, verdict.Portion{Broker: s.Broker, Topic: s.Topic, Group: s.Group, Loop: l, Histogram: of.Trends.Trend(l, t), Missing: of.Failed(l, t)})
			}
		}
		return verdict.Latency(in.result, c, t.String(), portions)
	}
}

// wait is for the trend of the executor open-arrival-rate.
func (j *judge) wait(asked *metrics.TagSet, c verdict.Condition) result.Decision {
	var portions []verdict.Portion
	for _, t := range executors.Totals() {
		if t.Tags.Contains(asked) {
			portions = append(portions, verdict.Portion{Histogram: t.Lag, Missing: t.Unserved})
		}
	}
	return verdict.Latency(j.result, c, "queue_wait", portions)
}

// accountCount is for a counter of the account.
func accountCount(count string) decider {
	return func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision {
		return verdict.Account(j.result, c, count, func(t *result.Topic, g *result.Group) bool {
			return named(j.run.state.Load().runTags, t.Driver, t.Topic, g.Group).Contains(asked)
		}, j.seconds())
	}
}

// seconds is how long k6 says that the test took.
func (j *judge) seconds() float64 {
	if state := j.run.state.Load(); state != nil {
		return state.execution.GetCurrentTestRunDuration().Seconds()
	}
	return j.result.Seconds
}

// counter is for a counter of what happened: that something never did is known where its tags, without those of the event, were in use.
func counter(m *metrics.Metric, event ...string) decider {
	return func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision {
		values := j.run.pushed.of(m, asked)
		in, why := j.portion(asked)
		if why != "" {
			return verdict.Undecided("%s", why)
		}
		rest := in.tags
		for _, tag := range event {
			rest = rest.Without(tag)
		}
		if len(values) == 0 && !asked.IsEmpty() && !j.inUse(rest) {
			return verdict.Undecided("nothing in the test had these tags")
		}
		return c.DecideCount(total(values), in.seconds)
	}
}

// inUse reports whether anything was done under these tags.
func (j *judge) inUse(tags *metrics.TagSet) bool {
	if state := j.run.state.Load(); state != nil && state.runTags.Contains(tags) {
		return true
	}
	for _, s := range j.run.All() {
		if tagsOf(s.Labels).Contains(tags) {
			return true
		}
	}
	return false
}

// corrupted is for the counter that only what is received can add to.
func corrupted(m *metrics.Metric) decider {
	return func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision {
		received := int64(0)
		in, why := j.portion(asked)
		if why != "" {
			return verdict.Undecided("%s", why)
		}
		for _, s := range j.run.All() {
			if tagsOf(s.Labels).Contains(in.tags) {
				received += in.measured(s).Counters[recording.Received]
			}
		}
		switch {
		case received == 0:
			return verdict.Undecided("nothing was received")
		case !j.result.Verdict.Account:
			return verdict.Undecided("the account of this run is not valid")
		}
		return counter(m)(j, asked, c)
	}
}

// gauge is for one that k6 keeps the last value of.
func gauge(m *metrics.Metric) decider {
	return func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision {
		return lastOf(j.run.pushed.of(m, asked), c)
	}
}

// lastOf decides by the last value of the one series that there should be.
func lastOf(values []float64, c verdict.Condition) result.Decision {
	switch len(values) {
	case 0:
		return verdict.Undecided("there are no samples")
	case 1:
		return c.Decide(values[0])
	}
	return verdict.Undecided("it has %d series, whose last values are not one: name the tags of one of them", len(values))
}

// quantile is for the gauge of a latency's quantiles, each second's.
func quantile(m *metrics.Metric) decider {
	return func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision {
		if !j.result.Verdict.Latencies {
			return verdict.Undecided("the latencies of this run are not valid")
		}
		return lastOf(j.run.pushed.of(m, asked), c)
	}
}

// arrivalCount is for a counter of the executor open-arrival-rate.
func arrivalCount(of func(executors.ScenarioTotals) uint64) decider {
	return func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision {
		values := ofScenarios(asked, of)
		if len(values) == 0 && !asked.IsEmpty() {
			return verdict.Undecided("no scenario of open-arrival-rate had these tags")
		}
		return c.DecideCount(total(values), j.seconds())
	}
}

// queue is for the gauge of the arrivals that wait, of which those are left in the end that were never served.
func (j *judge) queue(asked *metrics.TagSet, c verdict.Condition) result.Decision {
	return lastOf(ofScenarios(asked, func(t executors.ScenarioTotals) uint64 { return t.Unserved }), c)
}

// ofScenarios gives a count of each scenario with these tags.
func ofScenarios(asked *metrics.TagSet, of func(executors.ScenarioTotals) uint64) (values []float64) {
	for _, t := range executors.Totals() {
		if t.Tags.Contains(asked) {
			values = append(values, float64(of(t)))
		}
	}
	return values
}

func total(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// valid is for the verdict, after everything else was decided.
func (j *judge) valid(_ *metrics.TagSet, c verdict.Condition) result.Decision {
	if j.result.Verdict.Valid {
		return c.Decide(1)
	}
	return c.Decide(0)
}

// curve is for one point of a percentile curve of the whole run. Where a topic has it of both loops, or of several groups, it is that of the
// open loop, and of all groups together.
func (j *judge) curve(asked *metrics.TagSet, c verdict.Condition) result.Decision {
	type place struct {
		topic int
		trend string
		q     float64
	}
	found := map[place]result.Decision{}
	for i := range j.result.Topics {
		topic := &j.result.Topics[i]
		j.run.eachPoint(topic, func(of curve, p curvePoint, tags *metrics.TagSet) {
			if !tags.Contains(asked) {
				return
			}
			at := c
			at.Method, at.Quantile = "p", p.q
			portion := verdict.Portion{Broker: topic.Broker, Topic: topic.Topic, Group: of.group, Histogram: of.values}
			if of.loop == recording.Closed.String() {
				portion.Loop = recording.Closed
			}
			portion.Missing = verdict.Failed(topic, of.name)
			found[place{i, of.trend, p.q}] = verdict.Latency(j.result, at, of.trend, []verdict.Portion{portion})
		})
	}
	switch len(found) {
	case 0:
		return verdict.Undecided("there is no such point: there are no samples, or too few")
	case 1:
		for _, d := range found {
			return d
		}
	}
	return verdict.Undecided("it has %d points: name the tags of one of them", len(found))
}

// pushed is what k6 was given of counters, added up, and of gauges, the last.
type pushed struct {
	mu     sync.Mutex
	values map[metrics.TimeSeries]float64
}

func (p *pushed) note(samples metrics.Samples) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range samples {
		switch s.Metric.Type {
		case metrics.Counter:
			p.values[s.TimeSeries] += s.Value
		case metrics.Gauge:
			p.values[s.TimeSeries] = s.Value
		}
	}
}

// of gives the values of a metric's series with these tags.
func (p *pushed) of(m *metrics.Metric, asked *metrics.TagSet) (values []float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for series, v := range p.values {
		if series.Metric == m && series.Tags.Contains(asked) {
			values = append(values, v)
		}
	}
	return values
}
