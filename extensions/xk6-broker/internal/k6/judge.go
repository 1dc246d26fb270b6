package k6

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// judge decides conditions on the module's metrics by the result of the run. Measurements are final
// then.
type judge struct {
	run    *run
	result *result.Result
}

// decider decides a condition on the part of a metric that has the tags asked for.
type decider = func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision

// latency is for a trend of the engine, by its exact histograms.
func latency(t recording.Trend) decider {
	return func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision {
		part, why := j.portion(asked)
		if why != "" {
			return verdict.Undecided("%s", why)
		}
		var portions []verdict.Portion
		for s, m := range part.measured {
			for l := range recording.Loop(recording.NumLoops) {
				if inLoop(m, t, l) && trendTags(tagsOf(s.Labels), t, l).Contains(part.tags) {
					portions = append(portions, verdict.Portion{
						Broker: s.Broker, Topic: s.Topic, Group: s.Group, Loop: l,
						Histogram: m.Trends.Trend(l, t), Missing: m.Failed(t),
					})
				}
			}
		}
		return verdict.Latency(part.result, c, t.String(), portions)
	}
}

// inLoop reports whether a trend has values in a loop, or is the open one of a trend without values.
func inLoop(m *engine.Measured, t recording.Trend, l recording.Loop) bool {
	open, closed := m.Trends.Trend(recording.Open, t).Count(), m.Trends.Trend(recording.Closed, t).Count()
	if l == recording.Closed {
		return closed > 0
	}
	return open > 0 || closed == 0
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

// seconds returns k6's duration of the test.
func (j *judge) seconds() float64 {
	if state := j.run.state.Load(); state != nil {
		return state.execution.GetCurrentTestRunDuration().Seconds()
	}
	return j.result.Seconds
}

// eventValues are the values of tags that come from events.
var eventValues = map[string][]string{
	"outcome": {driver.Ack.String(), driver.Requeue.String(), driver.Reject.String()},
	"kind": {
		string(
			driver.Timeout,
		), string(driver.Disconnected), string(driver.Throttled), string(driver.Rejected), string(driver.NotFound),
		string(
			driver.Denied,
		), string(driver.Unsupported), string(driver.Closed), string(driver.Canceled), string(driver.Unknown),
	},
}

// counter is for a counter of events, and events are its tags that come from them. It is 0 if no
// event happened under tags that the test used.
func counter(m *metrics.Metric, events ...string) decider {
	return func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision {
		values := j.run.pushed.of(m, asked)
		part, why := j.portion(asked)
		if why != "" {
			return verdict.Undecided("%s", why)
		}
		rest := part.tags
		for _, tag := range events {
			v, ok := rest.Get(tag)
			if allowed := eventValues[tag]; ok && allowed != nil && !slices.Contains(allowed, v) {
				return verdict.Undecided("no %s %q: there are %s", tag, v, strings.Join(allowed, ", "))
			}
			rest = rest.Without(tag)
		}
		if len(values) == 0 && !asked.IsEmpty() && !j.used(rest) {
			return verdict.Undecided("nothing in the test had these tags")
		}
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		return c.DecideCount(sum, part.seconds)
	}
}

// used reports whether anything was measured under these tags.
func (j *judge) used(tags *metrics.TagSet) bool {
	if state := j.run.state.Load(); state != nil && state.runTags.Contains(tags) {
		return true
	}
	return slices.ContainsFunc(j.run.All(), func(s *engine.Series) bool { return tagsOf(s.Labels).Contains(tags) })
}

// corrupted is for the counter that only received messages add to.
func corrupted(m *metrics.Metric) decider {
	return func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision {
		part, why := j.portion(asked)
		if why != "" {
			return verdict.Undecided("%s", why)
		}
		received := int64(0)
		for s, measured := range part.measured {
			if tagsOf(s.Labels).Contains(part.tags) {
				received += measured.Counters[recording.Received]
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

// gauge is for a metric of which k6 keeps the last value. It has one only if it has one series.
func gauge(m *metrics.Metric) decider {
	return func(j *judge, asked *metrics.TagSet, c verdict.Condition) result.Decision {
		values := j.run.pushed.of(m, asked)
		switch len(values) {
		case 0:
			return verdict.Undecided("there are no samples")
		case 1:
			return c.Decide(values[0])
		}
		return verdict.Undecided("it has %d series: name the tags of one of them", len(values))
	}
}

// insteadOf is for gauges that only draw a latency.
func insteadOf(metric string) decider {
	return func(*judge, *metrics.TagSet, verdict.Condition) result.Decision {
		return verdict.Undecided("it is for charts: set the threshold on the latency itself, as in %s: p(99)<50", metric)
	}
}

// valid is for the verdict, after everything else was decided.
func (j *judge) valid(_ *metrics.TagSet, c verdict.Condition) result.Decision {
	if j.result.Verdict.Valid {
		return c.Decide(1)
	}
	return c.Decide(0)
}

// pushed is the sum of each counter that k6 was given, and the last value of each gauge.
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

// of returns the values of a metric's series that have these tags.
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

// portion is the part of a run that tags ask for: all of it, or a phase.
type portion struct {
	tags     *metrics.TagSet // without that of the phase
	result   *result.Result
	seconds  float64
	measured map[*engine.Series]*engine.Measured
}

// portion returns the part that tags ask for, or why there is none.
func (j *judge) portion(asked *metrics.TagSet) (p portion, why string) {
	name, ok := asked.Get(phaseTag)
	if !ok || len(j.result.Phases) == 0 {
		return portion{asked, j.result, j.seconds(), j.measured("")}, ""
	}
	of := j.result.Phase(name)
	if of == nil || name == result.Starting {
		return p, fmt.Sprintf("there was no phase %q: there were %s", name, strings.Join(j.result.PhaseNames(), ", "))
	}
	return portion{asked.Without(phaseTag), j.result.During(name), of.Seconds, j.measured(name)}, ""
}

// measured returns the measurements of each series in a phase, or in the whole run.
func (j *judge) measured(phase string) map[*engine.Series]*engine.Measured {
	all, _ := j.run.collector.During(phase)
	return all
}
