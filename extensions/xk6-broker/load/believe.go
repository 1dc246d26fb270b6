package load

import (
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
	switch trend {
	case PublishLatency.String(), E2ELatency.String(), RequestLatency.String(), FailedLatency.String():
		if lag := t.Trends[GeneratorLag.String()]; lag != nil {
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

// absent is the share of the messages whose latency is not in a distribution.
func (t *TopicResult) absent(trend string, g *GroupResult) float64 {
	switch strings.TrimSuffix(trend, ClosedSuffix) {
	case PublishLatency.String():
		return t.failedShare()
	case RequestLatency.String():
		return share(t.errors("request"), t.Counts[Sent.String()])
	case E2ELatency.String():
		if g != nil {
			return g.unseen()
		}
		most := 0.0
		for i := range t.Groups {
			most = max(most, t.Groups[i].unseen())
		}
		return most
	}
	return 0
}

// unseen is the share of what the group should have received that no consumer received.
func (a *Accounting) unseen() float64 {
	return share(int64(a.Missing+a.Drained-a.Elsewhere), int64(a.Expected))
}

func (t *TopicResult) failedShare() float64 {
	return share(t.errors("send"), t.Counts[Sent.String()])
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
