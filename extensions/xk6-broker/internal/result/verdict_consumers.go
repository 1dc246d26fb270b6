package result

import (
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

const (
	// slowConsumer is how long the median message may wait in the client's buffer without a note.
	slowConsumer = 10 * time.Millisecond
	// behind is how many seconds of its rate may be outstanding at the end of the load without a note.
	behind = 0.5
)

// judgeConsumers notes consumers that did not settle what they received, or did not keep up.
func (t *Topic) judgeConsumers(v *Verdict) {
	for i := range t.Groups {
		g := &t.Groups[i]
		t.judgeSettling(v, g)
		wait, all := g.Trends[recording.DeliveryWait.String()], g.Trends[recording.E2ELatency.String()]
		if wait == nil || all == nil || !wait.Supported(0.5) {
			continue
		}
		if p50 := wait.Quantile(0.5); time.Duration(p50) > slowConsumer && 2*p50 > all.Quantile(0.5) {
			v.note(t.subjectOf(g), reason.ConsumersSlower, reason.Values{"why": "buffered", "wait": time.Duration(p50)})
			return
		}
	}
	if n, length := t.fellBehind(); n > 0 {
		at := t.subject()
		if len(t.Groups) == 1 {
			at = t.subjectOf(&t.Groups[0])
		}
		v.note(at, reason.ConsumersSlower, reason.Values{"why": "backlog", "count": n, "wait": length})
	}
}

// judgeSettling notes messages that a group received and did not settle, if the broker delivers them again.
func (t *Topic) judgeSettling(v *Verdict, g *Group) {
	if !g.Kept || g.Received <= g.Settled || t.consumesWithoutAck(g.Group) {
		return
	}
	unsettled := int64(g.Received - g.Settled)           //gosec:disable G115 -- a count, far below the limit
	if share(unsettled, int64(g.Received)) > minorLoss { //gosec:disable G115 -- a count, far below the limit
		v.note(t.subjectOf(g), reason.Unsettled, reason.Values{"count": unsettled, "settled": g.Settled, "received": g.Received})
	}
}

// consumesWithoutAck reports whether a loop of the group never acknowledges, by its options.
func (t *Topic) consumesWithoutAck(group string) bool {
	for _, loop := range t.Options["consume"] {
		if name, _ := loop["group"].(string); name == group && loop["ack"] == "none" {
			return true
		}
	}
	return false
}

// fellBehind returns how many messages were outstanding at the end of the load, and how many seconds of its rate they
// are, if they grew in its last two quarters while messages were received. With several processes it is not known.
func (t *Topic) fellBehind() (n uint64, length float64) {
	load := inner(t.History, func(p Point) bool { return p.Counts[recording.Sent.String()] > 0 })
	if !t.Alone || len(load) < 4 || slices.ContainsFunc(t.Groups, func(g Group) bool { return g.Lost > 0 }) {
		return 0, 0
	}
	var sent, took float64
	half, late, end := len(load)/2, len(load)*3/4, len(load)
	n = load[end-1].Outstanding
	for _, quarter := range [][]Point{load[half-1 : late], load[late-1 : end]} {
		var received int64
		for _, p := range quarter[1:] {
			sent, took, received = sent+float64(p.Counts[recording.Sent.String()]), took+p.Seconds, received+p.Counts[recording.Received.String()]
		}
		if first, last := quarter[0].Outstanding, quarter[len(quarter)-1].Outstanding; received == 0 || last < first+n/8 {
			return 0, 0
		}
	}
	if length = float64(n) * took / max(1, sent); length < behind {
		return 0, 0
	}
	return n, length
}
