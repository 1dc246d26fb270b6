package load

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/pace"
)

// goal is what a produce loop is to do.
type goal struct {
	loop Loop
	unit string // what it is counted in: "messages" or "s"
}

// interruptions are of all loops with one goal that were ended before they had reached it.
type interruptions struct {
	loops    int
	done, of float64 // by all of them, in the goal's unit
}

// missing is the share of what they were to do that they have not done.
func (i interruptions) missing() float64 { return 1 - i.done/i.of }

// asked is how many messages the loop is to send, of random arrivals on the average; it is false where only its duration says.
func (p Produce) asked() (n uint64, known bool) {
	if p.Schedule != nil {
		s := pace.Even(p.Schedule())
		if n, known = pace.Count(s); p.Duration > 0 {
			n, known = pace.Until(s, p.Duration-1), true
		}
	}
	if p.Count > 0 && (!known || p.Count < n) {
		n, known = p.Count, p.Schedule != nil || p.Duration == 0
	}
	return n, known
}

// Interrupted notes that the loop was ended after so many messages were due, and so much time, before it was over: the verdict says so.
func (p Produce) Interrupted(t *Topic, due uint64, after time.Duration) {
	g, i := goal{Open, "messages"}, interruptions{loops: 1, done: float64(due)}
	if p.Schedule == nil {
		g.loop = Closed
	}
	switch n, known := p.asked(); {
	case known:
		i.of = max(float64(n), i.done) // chance may have drawn more
	case p.Duration > 0:
		g.unit, i.done, i.of = "s", after.Seconds(), p.Duration.Seconds()
	default:
		return // it has no end of its own
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.interrupted[g]
	t.interrupted[g] = interruptions{all.loops + i.loops, all.done + i.done, all.of + i.of}
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

// judgeInterruptions says which loops did not get to their end. That the whole test was ended early is said otherwise. The rate of a closed
// loop is what it is all the same; an open one was to put the system under a load that it did not put it under.
func (t *TopicResult) judgeInterruptions(v *Verdict) {
	for _, g := range []goal{{Open, "messages"}, {Closed, "messages"}, {Closed, "s"}} {
		i := t.interrupted[g]
		if i.loops == 0 {
			continue
		}
		what := map[Loop]string{Open: "schedule", Closed: "closed loop"}[g.loop]
		which := fmt.Sprintf("a %s of produce() was", what)
		if i.loops > 1 {
			which = fmt.Sprintf("%d %ss of produce() were", i.loops, what)
		}
		text := fmt.Sprintf("%s: %s interrupted after %s of %s %s, because the scenario ended first", t.Topic, which, amount(i.done), amount(i.of), g.unit)
		if g.loop == Open && i.missing() > trifle {
			v.because(latencies, "%s; give it more time (maxDuration, duration, gracefulStop): produce() waits for consumers within it", text)
		} else {
			v.note("%s", text)
		}
	}
}

// amount is a number of messages, or of seconds to the tenth.
func amount(n float64) string { return strconv.FormatFloat(math.Round(10*n)/10, 'f', -1, 64) }
