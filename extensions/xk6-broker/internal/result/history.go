package result

import (
	"math"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Point is one interval of a topic's history: about a second or, of a long run, a power of two of them.
type Point struct {
	At          float64          `json:"at"`      // seconds from the start to the end of the interval
	Seconds     float64          `json:"seconds"` // its length
	Counts      map[string]int64 `json:"counts"`
	Errors      int64            `json:"errors"`
	ErrorKinds  map[string]int64 `json:"errorKinds,omitempty"` // the errors by kind
	InFlight    int64            `json:"inFlight"`             // of the process: sent and not confirmed; the most of those seen each second
	Outstanding uint64           `json:"outstanding"`          // expected by the groups and not received yet, in this process; likewise
	Backlog     map[string]int64 `json:"backlog,omitempty"`    // messages at the broker for each group; likewise
	CPU         float64          `json:"cpu"`                  // the share of its CPUs that the process used, 0 to 1, on average
	Busiest     float64          `json:"busiest"`              // the same, over the worst 5 seconds under load that ended in the interval
}

// Summary is the distribution of an interval in five numbers; ns.
type Summary struct {
	At      float64 `json:"at"`      // seconds from the start to the end of the interval
	Seconds float64 `json:"seconds"` // its length
	Count   uint64  `json:"count"`   // 0: nothing was measured, and the other numbers are 0
	P50     int64   `json:"p50"`
	P90     int64   `json:"p90"`
	P99     int64   `json:"p99"`
	P999    int64   `json:"p999"`
	Max     int64   `json:"max"`
}

// summarise returns the summary of a distribution.
func summarise(h *hist.Histogram, at, seconds float64) Summary {
	return Summary{
		At: at, Seconds: seconds, Count: h.Count(), Max: h.Max(),
		P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99), P999: h.Quantile(0.999),
	}
}

// timed is a statement about an interval.
type timed interface {
	end() float64
	length() float64
}

func (p Point) end() float64      { return p.At }
func (p Point) length() float64   { return p.Seconds }
func (s Summary) end() float64    { return s.At }
func (s Summary) length() float64 { return s.Seconds }

// Length returns the median length of the intervals, in whole seconds and at least 1.
func Length[T timed](all []T) float64 {
	lengths := make([]float64, len(all))
	for i, one := range all {
		lengths[i] = one.length()
	}
	slices.Sort(lengths)
	if len(lengths) == 0 {
		return 1
	}
	return max(1, math.Round(lengths[len(lengths)/2]))
}

// lengthFor returns how many intervals with these numbers of messages to join, so that nine tenths of them support a
// p99: a power of two, and at most a tenth of the run. If that is too few, they support a p90, or a median.
func lengthFor(counts []uint64) int {
	for _, least := range []uint64{1000, 100, 20} {
		for length := 1; length == 1 || length <= len(counts)/10; length *= 2 {
			all, have := 0, 0
			for joined := range slices.Chunk(counts, length) {
				var n uint64
				for _, count := range joined {
					n += count
				}
				if n > 0 {
					all++
				}
				if n >= least {
					have++
				}
			}
			if 10*have >= 9*(all-2) { // the load went on in part of the first and the last only
				return length
			}
		}
	}
	return 1
}
