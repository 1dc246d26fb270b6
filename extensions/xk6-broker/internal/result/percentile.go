//gosec:disable G115 -- counts, far below their limits
package result

import (
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

const (
	// OwedShare is how much of a percentile may be the generator's or the platform's own lateness: more is marked. It counts against
	// the percentile where that lateness is beyond owedFloor too, below which no system would notice.
	OwedShare = 0.1
	owedFloor = 2 * time.Millisecond
	// absentShare is how many of the messages beyond a percentile may be absent from the distribution. They are the slowest: they never
	// came, or came when nobody measured.
	absentShare = 0.1
)

// spell spells out the percentiles of trends: of the whole topic or, where g is not nil, of one group.
func (t *Topic) spell(trends map[string]*hist.Histogram, g *Group) map[string][]Percentile {
	spelt := make(map[string][]Percentile, len(trends))
	for name, h := range trends {
		absent := t.absent(name, g)
		believed := true
		for _, p := range h.Percentiles(shownQuantiles) {
			point, misled := t.owed(name, p)
			if misled || absent > absentShare*(1-p.Q) && p.Q < 1 {
				believed = false // and so is nothing beyond it
			}
			point.sound = believed && p.Supported
			point.Believed = point.sound && !t.blurred(name, p)
			spelt[name] = append(spelt[name], point)
		}
	}
	return spelt
}

// owed gives a percentile the share of it that is lateness, and tells whether that is enough to mislead.
func (t *Topic) owed(trend string, p hist.Percentile) (point Percentile, misled bool) {
	own := t.late(trend, p.Q, p.Value)
	point.Percentile = p
	if p.Value > 0 {
		point.Owed = min(1, float64(own)/float64(p.Value))
	}
	return point, point.Owed > OwedShare && own > owedFloor
}

// misled is the least percentile of those shown up to the quantile q, itself included, that lateness makes another one; false where
// there is none.
func (t *Topic) misled(trend string, h *hist.Histogram, q float64) (Percentile, bool) {
	upTo := slices.DeleteFunc(slices.Clone(shownQuantiles), func(shown float64) bool { return shown >= q })
	for _, p := range h.Percentiles(append(upTo, q)) {
		if point, misled := t.owed(trend, p); misled {
			return point, true
		}
	}
	return Percentile{}, false
}

// late is how late the generator itself was, or the platform, at a quantile of a latency, which has that value there. Of other trends it says nothing.
func (t *Topic) late(name string, q float64, value int64) time.Duration {
	var lag, hiccups *hist.Histogram // where the latency begins, and where it ends
	ends := 1
	trend, closed := strings.CutSuffix(name, recording.ClosedSuffix)
	switch trend {
	case recording.PublishLatency.String(), recording.E2ELatency.String(), recording.RequestLatency.String(), recording.FailedLatency.String():
		if !closed { // what has no schedule is not late
			lag = t.Trends[recording.GeneratorLag.String()]
		}
	case recording.PublishTime.String(), recording.E2ETime.String(), recording.RequestTime.String(), recording.DeliveryWait.String():
	default:
		return 0
	}
	if request := trend == recording.RequestLatency.String() || trend == recording.RequestTime.String(); request && len(t.Groups) > 0 {
		ends = 2 // somebody in the test answers
	}
	if t.Seen != nil && t.Seen.Supported(q) {
		hiccups = t.Seen
	}
	return time.Duration(lateness(lag, hiccups, ends, q, value))
}

// absent is the share of the messages that are not in a distribution: of the whole topic, which has it from the group that lacks most, or of
// one group where g is not nil.
func (t *Topic) absent(name string, g *Group) (most float64) {
	if trend, _ := strings.CutSuffix(name, recording.ClosedSuffix); !consumers(trend) {
		return lacking(t.Failed(name), t.measured(name))
	}
	if t.lacks != nil {
		return lacking(t.lacks[name], t.measured(name))
	}
	if g != nil {
		has := g.Received // where it got nothing of that loop
		if h := g.Trends[name]; h != nil {
			has = h.Count()
		}
		return lacking(t.missing(name, g), has)
	}
	for i := range t.Groups {
		most = max(most, t.absent(name, &t.Groups[i]))
	}
	return most
}

// lacking is the share that n values are of all, where a distribution has the others.
func lacking(n, has uint64) float64 { return share(int64(n), int64(n+has)) }

// consumers tells whether a trend is of the way of each message to its consumer.
func consumers(trend string) bool {
	return trend == recording.E2ELatency.String() || trend == recording.E2ETime.String() || trend == recording.DeliveryWait.String()
}

// Failed is how many messages are not in a trend of the producers' side, as the topic calls it, because their sends failed; 0 of another trend.
// Those of which it is not known in which loop they were sent count in both.
func (t *Topic) Failed(name string) uint64 {
	trend, _ := strings.CutSuffix(name, recording.ClosedSuffix)
	switch op := SentBy(trend); {
	case op == "":
		return 0
	case t.phase != nil: // errors are counted in the phase in which they happened
		return t.failed(name)
	default:
		return min(uint64(t.ErrorsOf(op)), t.failed(name))
	}
}

// SentBy is the operation whose success a trend of the producers' side is measured of; "" of another trend.
func SentBy(trend string) string {
	switch trend {
	case recording.PublishLatency.String(), recording.PublishTime.String():
		return "send"
	case recording.RequestLatency.String(), recording.RequestTime.String():
		return "request"
	}
	return ""
}

// failed is how many sends and requests failed in the loop that a trend is of: all but those that are known to be of the other loop.
// Of a phase, those count that were due in it, too.
func (t *Topic) failed(name string) uint64 {
	other := recording.FailedLatency.String()
	n := max(uint64(t.ErrorsOf("send")+t.ErrorsOf("request")), t.measured(other)+t.measured(other+recording.ClosedSuffix))
	if !strings.HasSuffix(name, recording.ClosedSuffix) {
		other += recording.ClosedSuffix
	}
	return n - min(n, t.measured(other))
}

// measured is how many values a trend has.
func (t *Topic) measured(name string) uint64 {
	if h := t.Trends[name]; h != nil {
		return h.Count()
	}
	return 0
}

// missing is how many messages a group's distribution lacks, at most: no consumer received them, or their sends failed. A request without a
// reply was received all the same, perhaps, and so may be what failed otherwise.
func (t *Topic) missing(name string, g *Group) uint64 {
	each := uint64(max(1, g.Subscribers))
	return min(t.failed(name)*each+g.Missing+g.Drained-g.Routed, t.mostMissing(name, g))
}

// mostMissing is how many messages of a loop the group's distribution may lack at most: what was sent in it, or was to be, without what the
// distribution has. Nobody knows which of what came from elsewhere, or twice, is among the latter.
func (t *Topic) mostMissing(name string, g *Group) uint64 {
	if t.whole != nil { // what did not come may be any phase's
		i := slices.IndexFunc(t.whole.Groups, func(of Group) bool { return of.Group == g.Group })
		return t.whole.mostMissing(name, &t.whole.Groups[i])
	}
	suffix := ""
	if strings.HasSuffix(name, recording.ClosedSuffix) {
		suffix = recording.ClosedSuffix
	}
	sent := t.failed(name) + t.measured(recording.PublishLatency.String()+suffix) + t.measured(recording.RequestLatency.String()+suffix)
	if len(t.loops()) == 1 {
		sent = max(sent, uint64(t.Counts[recording.Sent.String()]))
	}
	sent *= uint64(max(1, g.Subscribers))
	for _, c := range []recording.Counter{recording.Sibling, recording.Earlier, recording.Routed, recording.Aliased} {
		sent += uint64(t.Counts[c.String()])
	}
	sent += g.Redelivered + g.Duplicated
	if g.Group == account.Subscribers { // one may have got what its predecessor got, too
		sent += g.Unexpected
	}
	if h := g.Trends[recording.E2ELatency.String()+suffix]; h != nil {
		sent -= min(sent, h.Count())
	}
	return sent
}

// ErrorsOf is how many errors an operation had.
func (t *Topic) ErrorsOf(op string) (n int64) {
	for _, e := range t.Errors {
		if e.Op == op {
			n += e.Count
		}
	}
	return n
}

func share(n, of int64) float64 {
	if n <= 0 || of <= 0 {
		return 0
	}
	return min(1, float64(n)/float64(of)) // what was drained may not have been expected
}

// believedUpTo is the greatest quantile of a latency that can be believed, of those that are shown, as far as clocks agree; false where not even the least
// can.
func believedUpTo(all []Percentile) (q float64, ok bool) {
	for _, p := range all {
		if p.sound {
			q, ok = p.Q, true
		}
	}
	return q, ok
}
