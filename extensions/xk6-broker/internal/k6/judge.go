package k6

import (
	"strings"

	"go.k6.io/k6/v2/metrics"

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
		within, phase := j.result, ""
		if name, ok := asked.Get(phaseTag); ok && len(j.result.Phases) > 0 {
			within, phase = j.result.During(name), name
			if within == nil || name == result.Starting {
				return verdict.Undecided("there was no phase %q: there were %s", name, strings.Join(j.result.PhaseNames(), ", "))
			}
			asked = asked.Without(phaseTag)
		}
		measured, _ := j.run.collector.During(phase)
		var portions []verdict.Portion
		for s, m := range measured {
			for l := range recording.Loop(recording.NumLoops) {
				if inLoop(m, t, l) && trendTags(tagsOf(s.Labels), t, l).Contains(asked) {
					portions = append(portions, verdict.Portion{
						Broker: s.Broker, Topic: s.Topic, Group: s.Group, Loop: l,
						Histogram: m.Trends.Trend(l, t), Missing: m.Failed(t),
					})
				}
			}
		}
		return verdict.Latency(within, c, t.String(), portions)
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
		has := func(t *result.Topic, g *result.Group) bool {
			return named(j.run.state.Load().runTags, t.Driver, t.Topic, g.Group).Contains(asked)
		}
		return verdict.Account(j.result, c, count, has, j.result.Seconds)
	}
}

// valid is for the verdict, after everything else was decided.
func (j *judge) valid(_ *metrics.TagSet, c verdict.Condition) result.Decision {
	return c.Decide(validity(j.result))
}

// validity returns the value of the metric valid.
func validity(r *result.Result) float64 {
	if r.Verdict.Valid {
		return 1
	}
	return 0
}
