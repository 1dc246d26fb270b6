package result

import (
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Goal is what a produce loop is to do.
type Goal struct {
	Loop recording.Loop
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
	for _, g := range []Goal{{recording.Open, "messages"}, {recording.Closed, "messages"}, {recording.Closed, "s"}} {
		i := t.Interrupted[g]
		values := reason.Values{"why": "closed", "done": i.Done, "total": i.Of, "unit": g.Unit, "missing": i.missing()}
		if g.Loop == recording.Open {
			values["why"] = "schedule"
		}
		switch {
		case i.Loops == 0:
		case g.Loop == recording.Open && i.missing() > trifle:
			v.invalid(t.subject(), reason.LoadIncomplete, values)
		default:
			v.note(t.subject(), reason.LoadIncomplete, values)
		}
	}
}
