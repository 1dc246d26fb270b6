package result

import (
	"fmt"
	"math"
	"strconv"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// Goal is what a produce loop is to do.
type Goal struct {
	Loop metric.Loop
	Unit string // what it is counted in: "messages" or "s"
}

// Interruption is of all loops with one goal that were ended before they had reached it.
type Interruption struct {
	Loops    int
	Done, Of float64 // by all of them, in the goal's unit
}

// missing is the share of what they were to do that they have not done.
func (i Interruption) missing() float64 { return 1 - i.Done/i.Of }

// judgeInterruptions says which loops did not get to their end. That the whole test was ended early is said otherwise. The rate of a closed
// loop is what it is all the same; an open one was to put the system under a load that it did not put it under.
func (t *Topic) judgeInterruptions(v *Verdict) {
	for _, g := range []Goal{{metric.Open, "messages"}, {metric.Closed, "messages"}, {metric.Closed, "s"}} {
		i := t.Interrupted[g]
		if i.Loops == 0 {
			continue
		}
		what := map[metric.Loop]string{metric.Open: "schedule", metric.Closed: "closed loop"}[g.Loop]
		which := fmt.Sprintf("a %s of produce() was", what)
		if i.Loops > 1 {
			which = fmt.Sprintf("%d %ss of produce() were", i.Loops, what)
		}
		text := fmt.Sprintf("%s: %s interrupted after %s of %s %s, because the scenario ended first", t.name(), which, amount(i.Done), amount(i.Of), g.Unit)
		if g.Loop == metric.Open && i.missing() > trifle {
			v.because(latencies, "%s; give it more time (maxDuration, duration, gracefulStop): produce() waits for consumers within it", text)
		} else {
			v.note("%s", text)
		}
	}
}

// amount is a number of messages, or of seconds to the tenth.
func amount(n float64) string { return strconv.FormatFloat(math.Round(10*n)/10, 'f', -1, 64) }
