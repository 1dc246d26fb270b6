//gosec:disable G115 -- counts, far below their limits
package result

import (
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

const (
	// OwedShare is the share of a percentile above which delay of the generator or its machine is marked.
	OwedShare = 0.1
	// owedFloor is the delay above which it makes the percentile unreliable too.
	owedFloor = 2 * time.Millisecond
	// absentShare is the share of the messages beyond a percentile that may be missing: the slowest never came.
	absentShare = 0.1
)

// shownQuantiles are those that a result spells out; any other can be read from its histograms.
var shownQuantiles = []float64{0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 1}

// Percentile is one point of a distribution, and whether it is reliable.
type Percentile struct {
	hist.Percentile
	Owed     float64 `json:"owed"`     // the share of it that may be delay of the generator or its machine, 0 to 1
	Believed bool    `json:"believed"` // it is supported, and neither delay, missing messages nor clocks can mislead

	sound bool // but for the clocks
}

// Spell returns the supported percentiles of a distribution by their names.
func Spell(h *hist.Histogram) map[string]int64 {
	spelt := map[string]int64{}
	for _, p := range h.Percentiles(shownQuantiles) {
		if p.Supported {
			spelt[QuantileName(p.Q)] = p.Value
		}
	}
	return spelt
}

// Describe spells out the percentiles of all topics and phases.
func (r *Result) Describe() {
	for i := range r.Topics {
		t := &r.Topics[i]
		t.Seen = r.Platform.Seen()
		t.Describe()
		for k := range r.Phases {
			t.describePhase(&r.Phases[k])
		}
	}
}

// Describe spells out the percentiles of the trends. It is called again after the trends change.
func (t *Topic) Describe() {
	t.Percentiles = t.spell(t.Trends, t.absent)
	for i := range t.Groups {
		g := &t.Groups[i]
		g.Percentiles = t.spell(g.Trends, func(name string) float64 { return t.absentFrom(g, name) })
	}
}

func (t *Topic) spell(trends map[string]*hist.Histogram, absent func(name string) float64) map[string][]Percentile {
	spelt := make(map[string][]Percentile, len(trends))
	for name, h := range trends {
		missing, sound := absent(name), true
		for _, p := range h.Percentiles(shownQuantiles) {
			owed, misled := t.owed(name, p)
			if misled || missing > absentShare*(1-p.Q) && p.Q < 1 {
				sound = false // and so is every greater one
			}
			point := Percentile{Percentile: p, Owed: owed, sound: sound && p.Supported}
			point.Believed = point.sound && !t.blurred(name, p.Value)
			spelt[name] = append(spelt[name], point)
		}
	}
	return spelt
}

// owed returns the share of a percentile that may be delay of the generator or its machine, and whether it misleads.
func (t *Topic) owed(trend string, p hist.Percentile) (share float64, misled bool) {
	late := t.late(trend, p.Q)
	if p.Value > 0 {
		share = min(1, float64(late)/float64(p.Value))
	}
	return share, share > OwedShare && late > owedFloor
}

// late returns the delay of the generator, or of its machine, at a quantile. Only latencies have it.
func (t *Topic) late(name string, q float64) time.Duration {
	var late int64
	trend, closed := strings.CutSuffix(name, recording.ClosedSuffix)
	switch trend {
	case recording.PublishLatency.String(), recording.E2ELatency.String(), recording.RequestLatency.String(), recording.FailedLatency.String():
		if lag := t.Trends[recording.GeneratorLag.String()]; lag != nil && !closed {
			late = lag.Quantile(q)
		}
	case recording.PublishTime.String(), recording.E2ETime.String(), recording.RequestTime.String(), recording.DeliveryWait.String():
	default:
		return 0
	}
	return max(time.Duration(late), t.hiccup(q))
}

// hiccup returns the delay of a thread that only wakes, at a quantile; 0 if it is not known.
func (t *Topic) hiccup(q float64) time.Duration {
	if t.Seen == nil || !t.Seen.Supported(q) {
		return 0
	}
	return time.Duration(t.Seen.Quantile(q))
}

// absent returns the share of the messages that are missing from a trend: for consumers, in the worst group.
func (t *Topic) absent(name string) (most float64) {
	if !consumers(name) {
		return lacking(t.Failed(name), t.measured(name))
	}
	if t.total != nil {
		return lacking(t.lacks[name], t.measured(name))
	}
	for i := range t.Groups {
		most = max(most, t.absentFrom(&t.Groups[i], name))
	}
	return most
}

func (t *Topic) absentFrom(g *Group, name string) float64 {
	received := g.Received
	if h := g.Trends[name]; h != nil {
		received = h.Count()
	}
	return lacking(t.missing(g, name), received)
}

// lacking returns the share of n values beside those that a distribution has.
func lacking(n, has uint64) float64 { return share(int64(n), int64(n+has)) }

// missing returns how many messages a group's distribution lacks at most: those that it did not receive, and those whose
// sends failed and that did not arrive all the same.
func (t *Topic) missing(g *Group, name string) uint64 {
	failed := min(t.failed(name), t.unconfirmed()) * uint64(max(1, g.Subscribers))
	return failed - min(failed, g.Unexpected) + g.Missing + g.Drained - g.Routed
}

// unconfirmed returns how many messages of the run were sent and not confirmed. A request is confirmed without a reply.
func (t *Topic) unconfirmed() uint64 {
	counts := t.Counts
	if t.phase != nil {
		counts = t.runCounts
	}
	return uint64(max(0, counts[recording.Sent.String()]-counts[recording.Confirmed.String()]))
}

// consumers reports whether a trend is of the way of each message to a consumer.
func consumers(name string) bool {
	switch strings.TrimSuffix(name, recording.ClosedSuffix) {
	case recording.E2ELatency.String(), recording.E2ETime.String(), recording.DeliveryWait.String():
		return true
	}
	return false
}

// Failed returns how many sends or requests are missing from a trend of the producers' side; 0 of another trend.
func (t *Topic) Failed(name string) uint64 {
	op := SentBy(strings.TrimSuffix(name, recording.ClosedSuffix))
	switch {
	case op == "":
		return 0
	case t.phase != nil: // an error counts in the phase in which it happened
		return t.failed(name)
	}
	return min(uint64(t.ErrorsOf(op)), t.failed(name))
}

// SentBy returns the operation that a trend of the producers' side measures; "" of another trend.
func SentBy(trend string) string {
	switch trend {
	case recording.PublishLatency.String(), recording.PublishTime.String():
		return "send"
	case recording.RequestLatency.String(), recording.RequestTime.String():
		return "request"
	}
	return ""
}

// failed returns how many sends and requests failed, without those that are known to be of the other loop.
func (t *Topic) failed(name string) uint64 {
	other := recording.FailedLatency.String()
	if !strings.HasSuffix(name, recording.ClosedSuffix) {
		other += recording.ClosedSuffix
	}
	failures := t.measured(recording.FailedLatency.String()) + t.measured(recording.FailedLatency.String()+recording.ClosedSuffix)
	n := max(uint64(t.ErrorsOf("send")+t.ErrorsOf("request")), failures)
	return n - min(n, t.measured(other))
}

// measured returns how many values a trend has.
func (t *Topic) measured(name string) uint64 {
	if h := t.Trends[name]; h != nil {
		return h.Count()
	}
	return 0
}

// ErrorsOf returns how many errors an operation had.
func (t *Topic) ErrorsOf(op string) (n int64) {
	for _, e := range t.Errors {
		if e.Op == op {
			n += e.Count
		}
	}
	return n
}

// loops returns the suffixes of the topic's trends: none and, of a topic with both loops, that of the closed one.
func (t *Topic) loops() []string {
	for name := range t.Trends {
		if t.OpenLoop && strings.HasSuffix(name, recording.ClosedSuffix) {
			return []string{"", recording.ClosedSuffix}
		}
	}
	return []string{""}
}

// reliableUpTo returns the greatest reliable quantile, clocks aside; false if there is none.
func reliableUpTo(all []Percentile) (q float64, ok bool) {
	i := slices.IndexFunc(all, func(p Percentile) bool { return !p.sound })
	if i < 0 {
		i = len(all)
	}
	if i == 0 {
		return 0, false
	}
	return all[i-1].Q, true
}

func share(n, total int64) float64 {
	if n <= 0 || total <= 0 {
		return 0
	}
	return min(1, float64(n)/float64(total)) // what was drained may not have been expected
}
