package k6

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// threshold is one that the test sets on a metric of the module.
type threshold struct {
	on    *subject
	name  string               // of the metric, with its tags
	tags  *metrics.TagSet      // those tags; the empty set where it names none
	among []*metrics.Threshold // where k6 finds it each time it evaluates
	place int

	source        string             // the condition, as the test has it
	held, notHeld *metrics.Threshold // one of them k6 is to find there once it is decided
}

// thresholds are those of the test, once they are known.
type thresholds struct {
	mu    sync.Mutex
	known []threshold
}

// thresholds lists those of the test, by name, once k6 has read its options; none before, and none where k6 is not to evaluate any.
func (r *run) thresholds() []threshold {
	r.limits.mu.Lock()
	defer r.limits.mu.Unlock()
	if len(r.limits.known) == 0 {
		r.limits.known = r.findThresholds()
	}
	return slices.Clone(r.limits.known)
}

func (r *run) findThresholds() (all []threshold) {
	for i := range r.subjects {
		s := &r.subjects[i]
		all = s.thresholds(all, s.metric, r.noTags)
		for _, sub := range s.metric.Submetrics {
			all = s.thresholds(all, sub.Metric, sub.Tags)
		}
	}
	slices.SortStableFunc(all, func(a, b threshold) int { return cmp.Compare(a.name, b.name) })
	return all
}

func (s *subject) thresholds(all []threshold, m *metrics.Metric, tags *metrics.TagSet) []threshold {
	for i, t := range m.Thresholds.Thresholds {
		all = append(all, threshold{
			on: s, name: m.Name, tags: tags, among: m.Thresholds.Thresholds, place: i,
			source: t.Source, held: settled(t, s.metric.Type, true), notHeld: settled(t, s.metric.Type, false),
		})
	}
	return all
}

// refuse returns which of the test's thresholds could never be judged, as no sample of the metric can have the tags. k6 has set up all
// thresholds before it makes the VUs, whose instances of the module ask.
func (r *run) refuse() error {
	for _, t := range r.thresholds() {
		if err := t.on.tags.check(t.tags); err != nil {
			return fmt.Errorf("threshold on %s: %s has %w", t.name, t.on.metric.Name, err)
		}
	}
	return nil
}

// declared are the groups that the consumers of the script are in.
type declared struct {
	mu     sync.Mutex
	groups []string
}

func (d *declared) add(group string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.groups, group) {
		d.groups = append(d.groups, group)
	}
}

// refuseGroups returns which of the test's thresholds name a group that no consumer is in. It is asked when the init contexts of the VUs are
// over: where they declare no consumer, some will be made later; and in a test of several processes others may have them.
func (r *run) refuseGroups() error {
	r.declared.mu.Lock()
	known := slices.Sorted(slices.Values(r.declared.groups))
	r.declared.mu.Unlock()
	if len(known) == 0 || r.shared {
		return nil
	}
	for _, t := range r.thresholds() {
		if group, ok := t.tags.Get("consumer_group"); ok && group != "" && !slices.Contains(known, group) {
			return fmt.Errorf("threshold on %s: no consumer is in the group %q%s: those of the init context are in %s; declare there what others there are", t.name, group,
				driver.Suggest(group, known), strings.Join(known, ", "))
		}
	}
	return nil
}

// decide judges the thresholds of the test by its result, and sees that k6 comes to the same. That the run is valid is decided last.
func (r *run) decide(result *result.Result) {
	j := judge{run: r, result: result}
	all := r.thresholds()
	last := slices.DeleteFunc(slices.Clone(all), func(t threshold) bool { return t.on.metric != r.metrics.valid })
	for _, t := range append(slices.DeleteFunc(all, func(t threshold) bool { return t.on.metric == r.metrics.valid }), last...) {
		t.enforce(t.decide(&j))
	}
}

func (t *threshold) decide(j *judge) result.Decision {
	decided := verdict.Undecided("%q is not understood", t.source)
	if c, err := verdict.ParseCondition(t.source); err == nil {
		decided = t.on.decide(j, t.tags, c)
	}
	verdict.AddThreshold(j.result, result.Threshold{Metric: t.name, Source: t.source, Decision: decided})
	return decided
}

// enforce makes k6 come to a decision, unless k6 comes to it by itself.
//
// k6 reads the place every two seconds, under a lock that it does not lend, and the last time after the end of the test is through. So no
// more is written here than that one word, of which k6 reads the old value or the new. What the new one points to is older than each VU, and
// so than each sample of a metric of ours: k6 does not evaluate a metric during the test before it has taken in a sample of it. docs/design.md says why
// there is no way by that lock.
//
//go:norace
func (t *threshold) enforce(d result.Decision) {
	_, phase := t.tags.Get(phaseTag) // k6 takes a rate by the time of the whole test
	switch {
	case d.Judged && t.on.by == byK6 && !phase:
	case d.Held:
		t.among[t.place] = t.held
	default:
		t.among[t.place] = t.notHeld
	}
}

// settled is a threshold that k6 shows as it shows the given one, and that always holds, or never does: nothing equals NaN.
func settled(t *metrics.Threshold, on metrics.MetricType, held bool) *metrics.Threshold {
	condition := map[metrics.MetricType]string{metrics.Trend: "max", metrics.Counter: "count", metrics.Gauge: "value"}[on]
	if held {
		condition += "!=NaN"
	} else {
		condition += "==NaN"
	}
	made := metrics.NewThresholds([]string{condition})
	if err := made.Parse(); err != nil { // a condition of ours that k6 refuses: its tests do not let that happen
		panic(fmt.Errorf("threshold %q: %w", condition, err))
	}
	decided := made.Thresholds[0]
	decided.Source, decided.AbortOnFail, decided.AbortGracePeriod = t.Source, t.AbortOnFail, t.AbortGracePeriod
	return decided
}
