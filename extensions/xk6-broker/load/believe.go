package load

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
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
func (t *TopicResult) spell(trends map[string]*hist.Histogram, g *GroupResult) map[string][]Percentile {
	spelt := make(map[string][]Percentile, len(trends))
	for name, h := range trends {
		absent := t.absent(name, g)
		believed := true
		for _, p := range h.Percentiles(shownQuantiles) {
			point, misled := t.owed(name, p)
			if misled || absent > absentShare*(1-p.Q) && p.Q < 1 {
				believed = false // and so is nothing beyond it
			}
			point.Believed = believed && p.Supported
			spelt[name] = append(spelt[name], point)
		}
	}
	return spelt
}

// owed gives a percentile the share of it that is lateness, and tells whether that is enough to mislead.
func (t *TopicResult) owed(trend string, p hist.Percentile) (point Percentile, misled bool) {
	own := t.late(trend, p.Q)
	point.Percentile = p
	if p.Value > 0 {
		point.Owed = min(1, float64(own)/float64(p.Value))
	}
	return point, point.Owed > OwedShare && own > owedFloor
}

// misled is the least percentile of those shown up to the quantile q, itself included, that lateness makes another one; false where
// there is none.
func (t *TopicResult) misled(trend string, h *hist.Histogram, q float64) (Percentile, bool) {
	upTo := slices.DeleteFunc(slices.Clone(shownQuantiles), func(shown float64) bool { return shown >= q })
	for _, p := range h.Percentiles(append(upTo, q)) {
		if point, misled := t.owed(trend, p); misled {
			return point, true
		}
	}
	return Percentile{}, false
}

// late is how late the generator itself was, or the platform, at a quantile of a latency. Of other trends it says nothing.
func (t *TopicResult) late(trend string, q float64) time.Duration {
	var late int64
	trend, closed := strings.CutSuffix(trend, ClosedSuffix)
	switch trend {
	case PublishLatency.String(), E2ELatency.String(), RequestLatency.String(), FailedLatency.String():
		if lag := t.Trends[GeneratorLag.String()]; lag != nil && !closed { // what has no schedule is not late
			late = lag.Quantile(q)
		}
	case PublishTime.String(), E2ETime.String(), RequestTime.String(), DeliveryWait.String():
	default:
		return 0
	}
	if t.hiccups != nil && t.hiccups.Supported(q) {
		late = max(late, t.hiccups.Quantile(q))
	}
	return time.Duration(late)
}

// absent is the share of the messages that are not in a distribution: of the whole topic, which has it from the group that lacks most, or of
// one group where g is not nil.
func (t *TopicResult) absent(name string, g *GroupResult) (most float64) {
	if trend, _ := strings.CutSuffix(name, ClosedSuffix); !consumers(trend) {
		return lacking(t.Failed(name), t.measured(name))
	}
	if g != nil {
		has := g.Received // where several accounts are one
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
	return trend == E2ELatency.String() || trend == E2ETime.String() || trend == DeliveryWait.String()
}

// Failed is how many messages are not in a trend of the producers' side, as the topic calls it, because their sends failed; 0 of another trend.
// Those of which it is not known in which loop they were sent count in both.
func (t *TopicResult) Failed(name string) uint64 {
	trend, _ := strings.CutSuffix(name, ClosedSuffix)
	if op := sentBy(trend); op != "" {
		return min(uint64(t.errors(op)), t.failed(name))
	}
	return 0
}

// sentBy is the operation whose success a trend of the producers' side is measured of; "" of another trend.
func sentBy(trend string) string {
	switch trend {
	case PublishLatency.String(), PublishTime.String():
		return "send"
	case RequestLatency.String(), RequestTime.String():
		return "request"
	}
	return ""
}

// failed is how many sends and requests failed in the loop that a trend is of: all but those that are known to be of the other loop.
func (t *TopicResult) failed(name string) uint64 {
	n, other := uint64(t.errors("send")+t.errors("request")), FailedLatency.String()
	if !strings.HasSuffix(name, ClosedSuffix) {
		other += ClosedSuffix
	}
	return n - min(n, t.measured(other))
}

// measured is how many values a trend has.
func (t *TopicResult) measured(name string) uint64 {
	if h := t.Trends[name]; h != nil {
		return h.Count()
	}
	return 0
}

// missing is how many messages a group's distribution lacks: no consumer received them, or their sends failed.
func (t *TopicResult) missing(name string, g *GroupResult) uint64 {
	failed := t.failed(name) * uint64(max(1, g.Subscribers))
	return failed + min(g.unseen(), t.mostUnseen(name, g)) + g.strayed()
}

// unseen is how many of the messages that the group should have received no consumer did.
func (a *Accounting) unseen() uint64 {
	return a.Missing + a.Drained + a.Removed - min(a.Elsewhere, a.Missing)
}

// mostUnseen is how many messages of one loop the group may not have received at most: what was sent in it, without what the group has of it.
// Nobody knows which of what came from elsewhere, or twice, is among the latter. Where all is of one loop there is no bound.
func (t *TopicResult) mostUnseen(name string, g *GroupResult) uint64 {
	suffix := ""
	if strings.HasSuffix(name, ClosedSuffix) {
		suffix = ClosedSuffix
	}
	if t.Trends[E2ELatency.String()] == nil || t.Trends[E2ELatency.String()+ClosedSuffix] == nil {
		return math.MaxUint64
	}
	sent := t.failed(name) + t.measured(PublishLatency.String()+suffix) + t.measured(RequestLatency.String()+suffix)
	sent *= uint64(max(1, g.Subscribers))
	for _, c := range []Counter{Sibling, Earlier, Routed, Aliased} {
		sent += uint64(t.Counts[c.String()])
	}
	sent += g.Redelivered + g.Duplicated
	if h := g.Trends[E2ELatency.String()+suffix]; h != nil {
		sent -= min(sent, h.Count())
	}
	return sent
}

func (t *TopicResult) errors(op string) (n int64) {
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
	return float64(n) / float64(of)
}

// believedUpTo is the greatest quantile of a latency that can be believed, of those that are shown; false where not even the least can.
func believedUpTo(all []Percentile) (q float64, ok bool) {
	for _, p := range all {
		if p.Believed {
			q, ok = p.Q, true
		}
	}
	return q, ok
}
