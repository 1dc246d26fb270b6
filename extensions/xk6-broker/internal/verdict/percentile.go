//gosec:disable G115 -- counts, far below their limits

// Package verdict decides how far the numbers of a run are reliable: percentiles, reasons,
// thresholds and trends. It joins the results of the processes of one test.
package verdict

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
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
		elsewhere := func(o result.Topic) bool { return o.Topic == t.Topic.Topic && o.Broker != t.Broker }
		if slices.ContainsFunc(r.Topics, elsewhere) {
			t.name += " at " + t.Broker
		}
		all = append(all, t)
	}
	return all
}

func (t topic) count(c recording.Counter) int64 { return t.Counts[c.String()] }

func (t topic) place() place { return place{topic: t.name} }

func (t topic) placeOf(g *result.Group) place { return place{topic: t.name, group: g.Group} }

// facts are the values of a reason.
type facts = reason.Values

// place is the subject of a reason; the zero place is the whole run.
type place struct{ topic, group, phase string }

func (p place) reason(code reason.Code, level reason.Level, values facts) reason.Reason {
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

// suffixes are the ends of trends' names; the second is of a closed loop beside an open one.
var suffixes = []string{"", recording.ClosedSuffix}

// share returns n as a share of the total, 0 to 1. Drained messages may not have been expected.
func share(n, total int64) float64 {
	if n <= 0 || total <= 0 {
		return 0
	}
	return min(1, float64(n)/float64(total))
}

const (
	// OwedShare is the share of a percentile above which the generator's delay is marked.
	OwedShare = 0.1
	// owedFloor is the delay above which it makes the percentile unreliable too.
	owedFloor = 2 * time.Millisecond
	// absentShare is the share of the messages beyond a percentile that may be missing.
	absentShare = 0.1
)

// quantiles are the ones that a result spells out; any other can be read from its histograms.
var quantiles = []float64{0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 1}

// distributions are the distributions of trends, by name.
type distributions = map[string]*hist.Histogram

// trendOf returns the trend of messages on their way with a name; false for any other, which has no
// delay of the generator and lacks no messages.
func trendOf(name string) (t recording.Trend, ok bool) {
	t, ok = recording.TrendNamed(strings.TrimSuffix(name, recording.ClosedSuffix))
	return t, ok && t.Looped()
}

// fromDue are the trends that begin when a message is due: the lag of the generator is in them.
var fromDue = []recording.Trend{
	recording.PublishLatency, recording.RequestLatency, recording.E2ELatency, recording.FailedLatency,
}

// QuantileName returns the common name of a quantile: p99.9.
func QuantileName(q float64) string {
	if q == 1 {
		return "maximum"
	}
	return "p" + strconv.FormatFloat(math.Round(q*1e8)/1e6, 'f', -1, 64)
}

// Describe sets the percentiles of all topics and phases.
func Describe(r *result.Result) {
	for i := range r.Topics {
		t := &r.Topics[i]
		t.Hiccups = r.Platform.Seen()
		describe(t)
		for k := range r.Phases {
			describePhase(t, &r.Phases[k])
		}
	}
}

func describe(t *result.Topic) {
	view := topic{Topic: t}
	t.Percentiles = view.percentiles(t.Trends, view.absent)
	for i := range t.Groups {
		g := &t.Groups[i]
		g.Percentiles = view.percentiles(g.Trends, func(name string) float64 { return view.absentFrom(g, name) })
	}
}

func describePhase(t *result.Topic, p *result.Phase) {
	w, ok := t.Phases[p.Name]
	if !ok {
		return
	}
	during := t.In(p)
	describe(&during)
	w.Percentiles = during.Percentiles
	for i := range w.Groups {
		for _, g := range during.Groups {
			if g.Group == w.Groups[i].Group {
				w.Groups[i].Percentiles = g.Percentiles
			}
		}
	}
	t.Phases[p.Name] = w
}

// percentiles returns the percentiles of trends. If one is not reliable, no greater one is.
func (t topic) percentiles(trends distributions, absent func(name string) float64) map[string][]result.Percentile {
	all := map[string][]result.Percentile{}
	for name, h := range trends {
		missing, sound := absent(name), true
		for _, p := range h.Percentiles(quantiles) {
			sound = sound && t.flaw(name, p, missing) == ""
			believed := sound && p.Supported && !t.blurred(name, p.Value)
			all[name] = append(all[name], result.Percentile{Percentile: p, Owed: t.owed(name, p), Believed: believed})
		}
	}
	return all
}

// flaw returns why a percentile is not reliable, clocks aside: "late" or "missing"; "" if it is.
func (t topic) flaw(name string, p hist.Percentile, missing float64) string {
	switch {
	case t.misled(name, p):
		return "late"
	case missing > absentShare*(1-p.Q) && p.Q < 1:
		return "missing"
	}
	return ""
}

// misled reports whether delay of the generator or its machine makes a percentile unreliable.
func (t topic) misled(name string, p hist.Percentile) bool {
	return t.owed(name, p) > OwedShare && t.late(name, p.Q) > owedFloor
}

// owed returns the share of a percentile that may be delay of the generator or its machine.
func (t topic) owed(name string, p hist.Percentile) float64 {
	return share(int64(t.late(name, p.Q)), p.Value)
}

// late returns the delay of the generator or its machine at a quantile.
func (t topic) late(name string, q float64) time.Duration {
	trend, ok := trendOf(name)
	if !ok {
		return 0
	}
	late := t.hiccup(q)
	lagging := slices.Contains(fromDue, trend) && !strings.HasSuffix(name, recording.ClosedSuffix)
	if lag := t.Trends[recording.GeneratorLag.String()]; lag != nil && lagging {
		late = max(late, time.Duration(lag.Quantile(q)))
	}
	return late
}

// hiccup returns the delay of a thread that only wakes, at a quantile; 0 if it is not known.
func (t topic) hiccup(q float64) time.Duration {
	if t.Hiccups == nil || !t.Hiccups.Supported(q) {
		return 0
	}
	return time.Duration(t.Hiccups.Quantile(q))
}

// absent returns the share of the messages that a trend lacks: for consumers, in the worst group.
func (t topic) absent(name string) (most float64) {
	most = lacking(Failed(t.Topic, name), t.measured(name))
	for i := range t.Groups {
		most = max(most, t.absentFrom(&t.Groups[i], name))
	}
	return most
}

func (t topic) absentFrom(g *result.Group, name string) float64 {
	received := g.Received
	if h := g.Trends[name]; h != nil {
		received = h.Count()
	}
	return lacking(t.missing(g, name), received)
}

// lacking returns the share of n values beside the values that a distribution has.
func lacking(n, has uint64) float64 { return share(int64(n), int64(n+has)) }

// missing returns how many messages a group's distribution lacks at most: the ones that it did not
// receive, and failed sends that did not arrive all the same.
func (t topic) missing(g *result.Group, name string) uint64 {
	if trend, ok := trendOf(name); !ok || !trend.Consumers() {
		return 0
	}
	sent, confirmed := recording.Sent.String(), recording.Confirmed.String()
	counts := t.Counts
	if t.Run != nil { // the answer to a send may belong to another phase
		counts = t.Run.Counts
	}
	unconfirmed := max(0, counts[sent]-counts[confirmed]) // a request is confirmed without a reply
	failed := min(t.failed(name), uint64(unconfirmed)) * uint64(max(1, g.Subscribers))
	return failed - min(failed, g.Unexpected) + g.Missing + g.Drained - g.Routed
}

// Failed returns how many sends or requests a trend of the producers lacks; 0 of another trend.
func Failed(t *result.Topic, name string) uint64 {
	if trend, ok := trendOf(name); !ok || trend.Operation() == "" {
		return 0
	}
	return topic{Topic: t}.failed(name)
}

// failed returns how many sends and requests failed, without the failures of the other loop.
func (t topic) failed(name string) uint64 {
	own, other := recording.FailedLatency.String(), recording.FailedLatency.String()+recording.ClosedSuffix
	if strings.HasSuffix(name, recording.ClosedSuffix) {
		own, other = other, own
	}
	n := max(uint64(t.errorsOf("send", "request")), t.measured(own)+t.measured(other))
	return n - min(n, t.measured(other))
}
