package result

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"

// Span is from when to when something was counted, in seconds from the start.
type Span struct {
	First float64 `json:"first"`
	Last  float64 `json:"last"`
}

func (s Span) and(o Span) Span { return Span{min(s.First, o.First), max(s.Last, o.Last)} }

// leastTime is how many seconds a rate needs.
const leastTime = 1

// RateBasis returns how much was counted and the seconds that it took, 0 if they are too few for a rate. The whole run took
// from the first message that was sent to the last that was sent or counted, a phase what it has of that.
func (t *Topic) RateBasis(counter string) (n, seconds float64) {
	if t.of != nil {
		return t.of.RateBasis(counter)
	}
	return rateBasis(counter, t)
}

// RateBasis is that of all topics together.
func (r *Result) RateBasis(counter string) (n, seconds float64) {
	topics := make([]*Topic, len(r.Topics))
	for i := range r.Topics {
		topics[i] = &r.Topics[i]
	}
	return rateBasis(counter, topics...)
}

func rateBasis(counter string, topics ...*Topic) (n, seconds float64) {
	var span Span
	var phase *Phase
	known := false
	for _, t := range topics {
		n, phase = n+float64(t.Counts[counter]), t.phase
		for _, of := range []recording.Counter{recording.Sent, paced(counter)} {
			if its, ok := t.Spans[of.String()]; ok && !known {
				span, known = its, true
			} else if ok {
				span = span.and(its)
			}
		}
	}
	if seconds = span.Last - span.First; phase != nil {
		seconds = 0
		for _, s := range phase.Stretches {
			seconds += max(0, min(s.To, span.Last)-max(s.From, span.First))
		}
		seconds /= float64(max(1, phase.Processes)) // each has the phase
	}
	if seconds < leastTime {
		return n, 0
	}
	return n, seconds
}

// paced is the counter whose times are those of another.
func paced(counter string) recording.Counter {
	switch counter {
	case recording.Due.String(), recording.Sent.String(), recording.BytesSent.String():
		return recording.Sent
	case recording.Confirmed.String():
		return recording.Confirmed
	}
	return recording.Received
}
