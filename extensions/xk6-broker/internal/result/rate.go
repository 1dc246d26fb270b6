package result

import (
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// Span is from when to when something was counted, in seconds from the start.
type Span struct {
	First float64 `json:"first"`
	Last  float64 `json:"last"`
	Pause float64 `json:"pause"` // how long the pause between two is, on average over the time: next to nothing where they come all the time
}

func (s Span) and(of Span) Span {
	both := Span{min(s.First, of.First), max(s.Last, of.Last), min(s.Pause, of.Pause)}
	if s.Pause == 0 || of.Pause == 0 { // one alone has none
		both.Pause = max(s.Pause, of.Pause)
	}
	return both
}

// joinSpans adds those of another process.
func (t *Topic) joinSpans(of *Topic, shift float64) {
	for name, s := range of.Spans {
		s.First, s.Last = s.First+shift, s.Last+shift
		if have, ok := t.Spans[name]; ok {
			s = s.and(have)
		}
		t.Spans[name] = s
	}
}

const (
	// leastLoad is for how many seconds a load that goes by a schedule goes on, at least, to have a rate.
	leastLoad = 0.01
	// leastEnd is for how many it goes on in a phase in which it ends, where the run has longer pauses: it may be one burst of several.
	leastEnd = 1.0
)

// WentOn gives how much was counted, and in how much time: from the first message that was sent to the last that was counted or sent, and to the next if they came evenly;
// of a phase, what it has of that. Where something was received before, or nothing was sent, as in a process that only consumes, it begins with the first that was counted. No
// time is given where it is too short for a rate.
func (t *Topic) WentOn(counter string) (n, seconds float64) {
	if t.of != nil {
		return t.of.WentOn(counter)
	}
	span, counts := t.span(counter)
	return float64(t.Counts[counter]), span.in(t.phase, counts, t.OpenLoop).known()
}

// WentOn is that of all topics together.
func (r *Result) WentOn(counter string) (n, seconds float64) {
	var all Span
	var counts int64
	var phase *Phase
	openLoop := true
	for i := range r.Topics {
		t := &r.Topics[i]
		n, phase = n+float64(t.Counts[counter]), t.phase
		if span, its := t.span(counter); its > 0 {
			if counts == 0 {
				all = span
			}
			all, counts, openLoop = all.and(span), counts+its, openLoop && t.OpenLoop
		}
	}
	return n, all.in(phase, counts, openLoop).known()
}

// span is that of a counter in the whole run, and how many messages it is of.
func (t *Topic) span(counter string) (span Span, counts int64) {
	whole := t
	if t.whole != nil {
		whole = t.whole
	}
	counter = paced(counter)
	span, counted := whole.Spans[counter]
	if load, sent := whole.Spans[metric.Sent.String()]; sent {
		if !counted {
			span = load
		}
		span = Span{min(load.First, span.First), max(load.Last, span.Last), load.Pause}
	}
	if t.phase != nil { // which may have what was sent before it, as that comes: the whole run has all of it
		span.Pause = max(span.Pause, whole.Spans[counter].Pause)
	}
	return span, whole.Counts[counter]
}

// paced is the counter whose times are those of another.
func paced(counter string) string {
	switch counter {
	case metric.Due.String(), metric.Sent.String(), metric.BytesSent.String():
		return metric.Sent.String()
	case metric.Confirmed.String():
		return counter
	}
	return metric.Received.String()
}

// period is for how long something went on.
type period struct {
	seconds float64
	least   float64 // of which there must be so many
	even    float64 // from one to the next, if they came evenly
	ended   bool    // with the last of all
}

// in is the time that a phase, or the whole run, has of a span in which so many were counted.
func (s Span) in(p *Phase, counts int64, openLoop bool) period {
	of := period{ended: true}
	if counts > 1 {
		of.even = (s.Last - s.First) / float64(counts-1)
	}
	if openLoop {
		of.least = leastLoad
	}
	end := s.Last + of.even
	switch {
	case p == nil:
		of.seconds = end - s.First
		return of
	case p.About:
		return of
	}
	of.ended = false
	for _, stretch := range p.Stretches {
		of.seconds += max(0, min(stretch.To, end)-max(stretch.From, s.First))
		of.ended = of.ended || stretch.To >= end
	}
	of.seconds /= float64(max(1, p.Processes)) // each has the phase
	if of.ended {
		of.least = max(of.least, min(leastEnd, s.Pause))
	}
	return of
}

// known is the time in seconds, or 0.
func (p period) known() float64 {
	if p.seconds < p.least {
		return 0
	}
	return p.seconds
}
