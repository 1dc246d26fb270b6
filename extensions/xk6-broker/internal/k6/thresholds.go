package k6

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// This file finds the thresholds of a test that k6 cannot decide, and makes k6 come to the module's
// decision. judge.go decides.

// subject is a metric that the module decides thresholds on.
type subject struct {
	metric *metrics.Metric
	decide decider
}

// subjects lists the metrics: latencies, counts of the account and the verdict. k6 decides
// thresholds on all other metrics, because it has all of their samples.
func subjects(m *brokerMetrics, queue *executors.Metrics) []subject {
	all := []subject{{queue.Wait, (*judge).wait}}
	for _, count := range accountCounts {
		all = append(all, subject{m.account[count], accountCount(count)})
	}
	for t, metric := range m.trends {
		all = append(all, subject{metric, latency(recording.Trend(t))})
	}
	// The verdict is last, because an undecided threshold is a reason against the run.
	return append(all, subject{m.valid, (*judge).valid})
}

// threshold is one that the test sets on a metric of the module.
type threshold struct {
	decide decider
	name   string               // of the metric, with its tags
	tags   *metrics.TagSet      // empty if the threshold has no tags
	among  []*metrics.Threshold // where k6 finds it each time it evaluates
	place  int
	source string // the condition

	held, notHeld *metrics.Threshold // one of them is put in the place once it is decided
}

// thresholds are the thresholds of the test.
type thresholds struct {
	subjects []subject
	noTags   *metrics.TagSet

	mu  sync.Mutex
	all []threshold
}

// find returns the thresholds of the test once k6 has read its options; none with --no-thresholds.
func (l *thresholds) find() []threshold {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) > 0 {
		return l.all
	}
	for _, s := range l.subjects {
		l.add(s, s.metric, l.noTags)
		byName := func(a, b *metrics.Submetric) int { return cmp.Compare(a.Name, b.Name) }
		for _, sub := range slices.SortedFunc(slices.Values(s.metric.Submetrics), byName) {
			l.add(s, sub.Metric, sub.Tags)
		}
	}
	return l.all
}

func (l *thresholds) add(s subject, m *metrics.Metric, tags *metrics.TagSet) {
	for i, t := range m.Thresholds.Thresholds {
		l.all = append(l.all, threshold{
			decide: s.decide, name: m.Name, tags: tags, among: m.Thresholds.Thresholds, place: i, source: t.Source,
			held: decided(t, s.metric.Type, true), notHeld: decided(t, s.metric.Type, false),
		})
	}
}

// decide judges the thresholds of the test by its result, and makes k6 come to the same.
func (r *run) decide(result *result.Result) {
	j := judge{run: r, result: result}
	for _, t := range r.limits.find() {
		t.enforce(t.judge(&j).Held)
	}
}

func (t *threshold) judge(j *judge) result.Decision {
	d := verdict.Undecided("%q is not understood", t.source)
	if c, err := verdict.ParseCondition(t.source); err == nil {
		d = t.decide(j, t.tags, c)
	}
	verdict.AddThreshold(j.result, result.Threshold{Metric: t.name, Source: t.source, Decision: d})
	return d
}

// enforce makes k6 come to a decision.
//
// k6 reads the place every two seconds, under a lock that a module cannot take. So one word is
// written, and it points to a threshold that is older than each VU. docs/design.md has the reasons.
//
//go:norace
func (t *threshold) enforce(held bool) {
	if held {
		t.among[t.place] = t.held
	} else {
		t.among[t.place] = t.notHeld
	}
}

// decided returns a threshold that k6 shows as the given one, and that always holds or never does:
// nothing equals NaN.
func decided(t *metrics.Threshold, on metrics.MetricType, held bool) *metrics.Threshold {
	condition := map[metrics.MetricType]string{metrics.Trend: "max", metrics.Counter: "count", metrics.Gauge: "value"}[on]
	if held {
		condition += "!=NaN"
	} else {
		condition += "==NaN"
	}
	made := metrics.NewThresholds([]string{condition})
	if err := made.Parse(); err != nil { // the condition is a constant
		panic(fmt.Errorf("threshold %q: %w", condition, err))
	}
	d := made.Thresholds[0]
	d.Source, d.AbortOnFail, d.AbortGracePeriod = t.Source, t.AbortOnFail, t.AbortGracePeriod
	return d
}
