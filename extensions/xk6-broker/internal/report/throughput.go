package report

import (
	"math"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// straddling is how many of a second's messages may be counted a second later, at the most that a second has: counts that are never
// further apart are as good as equal.
const straddling = 0.05

// throughput draws what was due, sent, confirmed and received, and the bytes of it. Drawn one over the other, equal rates would hide one
// another: those that are as good as equal are one line, which bears all their names.
func throughput(prefix string, t *result.Topic) []Chart {
	messages, bytes := []recording.Counter{recording.Due, recording.Sent, recording.Confirmed}, []recording.Counter{recording.BytesSent}
	if !t.OnlySends {
		messages, bytes = append(messages, recording.Received), append(bytes, recording.BytesReceived)
	}
	return []Chart{
		rates(prefix+"throughput", "Throughput", "/s", "", messages, t.History),
		rates(prefix+"bytes", "Throughput in bytes", "B/s", "Of message bodies. A stamp in the body is counted where it is sent, and not where it is received.", bytes, t.History),
	}
}

// rates draws counters per second.
func rates(id, title, unit, note string, counters []recording.Counter, history []result.Point) Chart {
	chart := overTime(id, title, unit, note, history)
	chart.say("What is as good as equal, all the time, is one line.")
	var drawn []recording.Counter
	for i, counter := range counters {
		name := strings.TrimPrefix(counter.String(), "bytes_")
		if k := slices.IndexFunc(drawn, func(c recording.Counter) bool { return equal(c, counter, history) }); k >= 0 {
			chart.Lines[k].Label += ", " + name
			continue
		}
		drawn = append(drawn, counter)
		chart.line(name, i, history, func(p result.Point) float64 {
			if p.Seconds == 0 {
				return math.NaN()
			}
			return float64(p.Counts[counter.String()]) / p.Seconds
		})
	}
	return chart
}

// equal reports whether two counters are as good as equal from the first interval to the last.
func equal(a, b recording.Counter, history []result.Point) bool {
	var most, ahead, apart int64
	for _, p := range history {
		m, n := p.Counts[a.String()], p.Counts[b.String()]
		ahead += m - n
		most, apart = max(most, m, n), max(apart, ahead, -ahead)
	}
	return float64(apart) <= straddling*float64(most)
}
