package result

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

const (
	// slowConsumer is how long the median message may wait in the client's buffer without a word.
	slowConsumer = 10 * time.Millisecond
	// behind is how many seconds of its rate may be outstanding at the end of the load without a word, however they grew.
	behind = 0.5
	// growing is the share of what is outstanding at the end of the load that must have come in each of its last two quarters, to call
	// it growing: of what grows steadily from the start it is a quarter.
	growing = 1.0 / 8
)

// judgeConsumers looks at what the consumers did with what they got, and whether they kept up.
func (t *Topic) judgeConsumers(v *Verdict) {
	buffered := false
	for i := range t.Groups {
		g := &t.Groups[i]
		t.judgeSettling(v, g)
		t.judgeRepeats(v, g)
		if wait, all := g.Trends[recording.DeliveryWait.String()], g.Trends[recording.E2ELatency.String()]; wait != nil && all != nil {
			if p50 := wait.Quantile(0.5); wait.Supported(0.5) && time.Duration(p50) > slowConsumer && 2*p50 > all.Quantile(0.5) {
				buffered = true
				v.note(t.subjectOf(g), reason.ConsumersSlower, reason.Values{"why": "buffered", "wait": time.Duration(p50)})
			}
		}
	}
	if n, length := t.fellBehind(); n > 0 && !buffered {
		at := t.subject()
		if len(t.Groups) == 1 {
			at = t.subjectOf(&t.Groups[0])
		}
		v.note(at, reason.ConsumersSlower, reason.Values{"why": "backlog", "count": n, "wait": length})
	}
}

// judgeSettling looks at what a group has received and never settled, where the broker keeps it for that: it comes again. What was given
// back and did not come again is settled as far as the test goes.
func (t *Topic) judgeSettling(v *Verdict, g *Group) {
	if !g.Kept || g.Received <= g.Settled || t.consumesWithoutAck(g.Group) {
		return
	}
	requeued := t.Counts[recording.Requeued.String()]
	back := requeued
	if len(t.Groups) == 1 { // else nobody knows whose they were
		back = max(0, requeued-int64(g.Redelivered))
	} //gosec:disable G115 -- a count, far below the limit
	unsettled := int64(g.Received-g.Settled) - back                                                                   //gosec:disable G115 -- a count, far below the limit
	if back = min(back, int64(g.Received-g.Settled)); len(t.Groups) == 1 && share(back, int64(g.Received)) > trifle { //gosec:disable G115 -- a count, far below the limit
		v.note(t.subjectOf(g), reason.Unsettled, reason.Values{"why": "returned", "count": back})
	}
	if g.Settled == 0 && requeued == 0 && unsettled > 0 || share(unsettled, int64(g.Received)) > trifle { //gosec:disable G115 -- a count, far below the limit
		v.note(t.subjectOf(g), reason.Unsettled, reason.Values{"why": "never", "count": unsettled, "settled": g.Settled, "received": g.Received})
	}
}

// judgeRepeats looks at a group that got again what nobody had given back, while its messages waited in the client: a broker that lends a
// message for a time gives it to the next consumer when that is over, read or not, and such a test may never end.
func (t *Topic) judgeRepeats(v *Verdict, g *Group) {
	wait := g.Trends[recording.DeliveryWait.String()]
	unasked := int64(g.Redelivered) - t.Counts[recording.Requeued.String()] //gosec:disable G115 -- a count, far below the limit
	deliveries := int64(g.Received + g.Redelivered)                         //gosec:disable G115 -- a count, far below the limit
	if wait == nil || !wait.Supported(0.5) || time.Duration(wait.Quantile(0.5)) <= slowConsumer || 10*unasked <= deliveries {
		return
	}
	v.note(t.subjectOf(g), reason.ConsumersSlower, reason.Values{"why": "again", "count": unasked, "total": deliveries, "wait": time.Duration(wait.Quantile(0.5))})
}

// consumesWithoutAck tells whether a loop of the group is one that never acknowledges, as its options say.
func (t *Topic) consumesWithoutAck(group string) bool {
	for _, loop := range t.Options["consume"] {
		of, _ := loop["group"].(string)
		if of == group && loop["ack"] == "none" {
			return true
		}
	}
	return false
}

// fellBehind gives how many messages were outstanding at the end of the load, and how many seconds of its rate they are, if there were more
// and more of them while consumers received: wherever they waited. It gives 0 where there were not, or where nobody can know, as of
// messages that other processes may have received, and those that are lost.
func (t *Topic) fellBehind() (n uint64, length float64) {
	load := t.underLoad()
	if end := len(load) - 1; end > 0 && load[end].Outstanding < load[end-1].Outstanding {
		load = load[:end] // the load ended early in that
	}
	if !t.Alone || len(load) < 4 {
		return 0, 0
	}
	quarter := func(q int) int { return (q*len(load)+3)/4 - 1 } // its last point
	half, late, last := quarter(2), quarter(3), quarter(4)
	for _, part := range [][]Point{load[half+1 : late+1], load[late+1:]} {
		var received int64
		for _, p := range part {
			received += p.Counts[recording.Received.String()]
		}
		if received == 0 {
			return 0, 0
		}
	}
	var sent int64
	var took float64
	for _, p := range load[half+1:] {
		sent, took = sent+p.Counts[recording.Sent.String()], took+p.Seconds
	}
	var lost uint64
	for _, g := range t.Groups {
		lost += g.Lost
	}
	n = load[last].Outstanding
	grown := min(float64(n)-float64(load[late].Outstanding), float64(load[late].Outstanding)-float64(load[half].Outstanding))
	length = float64(n) * took / float64(max(1, sent))
	if length < behind || grown < growing*float64(n) || 10*lost > n {
		return 0, 0
	}
	return n, length
}

// underLoad are the points from the first to the last in which something was sent.
func (t *Topic) underLoad() []Point {
	first, last := -1, -1
	for i, p := range t.History {
		if p.Counts[recording.Sent.String()] == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	if first < 0 {
		return nil
	}
	return t.History[first : last+1]
}
