// Package verdict decides how far the numbers of a run are reliable: percentiles, reasons, thresholds and
// trends. It joins the results of the processes of one test.
package verdict

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// topic is a topic that is judged, in the whole run or in a phase.
type topic struct {
	*result.Topic
	name string // in reasons: with the broker if another one has a topic of this name
}

func topicsOf(r *result.Result) (all []topic) {
	for i := range r.Topics {
		t := topic{&r.Topics[i], r.Topics[i].Topic}
		if slices.ContainsFunc(r.Topics, func(o result.Topic) bool { return o.Topic == t.Topic.Topic && o.Broker != t.Broker }) {
			t.name += " at " + t.Broker
		}
		all = append(all, t)
	}
	return all
}

// groupName is a group's name in thresholds.
func (t topic) groupName(g *result.Group) string {
	if g.Group == "" {
		return t.name
	}
	return t.name + ", " + g.Group
}

func (t topic) count(c recording.Counter) int64 { return t.Counts[c.String()] }

func (t topic) place() place { return place{topic: t.name} }

func (t topic) placeOf(g *result.Group) place { return place{topic: t.name, group: g.Group} }

// place is the subject of a reason; the zero place is the whole run.
type place struct{ topic, group, phase string }

func (p place) reason(code reason.Code, level reason.Level, values reason.Values) reason.Reason {
	r := reason.New(code, level, values)
	r.Topic, r.Group, r.Phase = p.topic, p.group, p.phase
	return r
}

// measured returns how many values a trend has.
func (t topic) measured(trend string) uint64 {
	if h := t.Trends[trend]; h != nil {
		return h.Count()
	}
	return 0
}

// errorsOf returns how many errors operations had.
func (t topic) errorsOf(ops ...string) (n int64) {
	for _, e := range t.Errors {
		if slices.Contains(ops, e.Op) {
			n += e.Count
		}
	}
	return n
}

// suffixes are the ends of trends' names: none and, of a topic with both loops, that of the closed one.
var suffixes = []string{"", recording.ClosedSuffix}

// share returns n as a share of the total, 0 to 1. Drained messages may not have been expected.
func share(n, total int64) float64 {
	if n <= 0 || total <= 0 {
		return 0
	}
	return min(1, float64(n)/float64(total))
}
