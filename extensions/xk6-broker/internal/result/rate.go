package result

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"

// Span is from when to when something was counted, in seconds from the start.
type Span struct {
	First float64 `json:"first"`
	Last  float64 `json:"last"`
}

// leastTime is how many seconds a rate needs.
const leastTime = 1

// RateBasis returns a count and its duration in seconds; 0 if that is too short for a rate. The run takes from the
// first send to the last send or count, a phase its part of that.
func (t *Topic) RateBasis(counter string) (n, seconds float64) {
	if t.total != nil {
		return t.total.RateBasis(counter)
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
	var all *Span
	var phase *Phase
	for _, t := range topics {
		n, phase = n+float64(t.Counts[counter]), t.phase
		for _, c := range []recording.Counter{recording.Sent, timedBy(counter)} {
			s, ok := t.Spans[c.String()]
			switch {
			case !ok:
			case all == nil:
				all = &s
			default:
				all = &Span{min(all.First, s.First), max(all.Last, s.Last)}
			}
		}
	}
	if all == nil {
		return n, 0
	}
	if seconds = all.Last - all.First; phase != nil {
		seconds = 0
		for _, s := range phase.Stretches {
			seconds += max(0, min(s.To, all.Last)-max(s.From, all.First))
		}
		seconds /= float64(max(1, phase.Processes)) // each has the phase
	}
	if seconds < leastTime {
		return n, 0
	}
	return n, seconds
}

// timedBy returns the counter whose times are those of another.
func timedBy(counter string) recording.Counter {
	switch counter {
	case recording.Due.String(), recording.Sent.String(), recording.BytesSent.String():
		return recording.Sent
	case recording.Confirmed.String():
		return recording.Confirmed
	}
	return recording.Received
}
