package engine

import (
	"context"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// asked is how many messages the loop is to send, of random arrivals on the average; it is false where only its duration says.
func (p Produce) asked() (n uint64, known bool) {
	if p.Schedule != nil {
		s := p.Share.Of(schedule.Even(p.Schedule()))
		if n, known = schedule.Count(s); p.Duration > 0 {
			n, known = schedule.Until(s, p.Duration-1), true
		}
	}
	if own := p.Share.Count(p.Count); p.Count > 0 && (!known || own < n) {
		n, known = own, p.Schedule != nil || p.Duration == 0
	}
	return n, known
}

// Interrupted notes that the loop was ended after so many messages were due, and so much time, before it was over: the verdict says so.
func (p Produce) Interrupted(t *Topic, due uint64, after time.Duration) {
	g, i := result.Goal{Loop: recording.Open, Unit: "messages"}, result.Interruption{Loops: 1, Done: float64(due)}
	if p.Schedule == nil {
		g.Loop = recording.Closed
	}
	switch n, known := p.asked(); {
	case known:
		i.Total = max(float64(n), i.Done) // chance may have drawn more
	case p.Duration > 0:
		g.Unit, i.Done, i.Total = "s", after.Seconds(), p.Duration.Seconds()
	default:
		return // it has no end of its own
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.interrupted[g]
	t.interrupted[g] = result.Interruption{Loops: all.Loops + i.Loops, Done: all.Done + i.Done, Total: all.Total + i.Total}
}

// noteInterruption notes that ctx has ended the loops before they were over, where that is so.
func (p Produce) noteInterruption(ctx context.Context, loops []*produceLoop) {
	if ctx.Err() == nil {
		return
	}
	var due uint64
	over := true
	for _, l := range loops {
		_, until := l.due()
		over = over && until == never
		due += l.next
	}
	if !over {
		p.Interrupted(loops[0].sender.pub.topic, due, time.Duration(driver.Now()-p.Start))
	}
}
