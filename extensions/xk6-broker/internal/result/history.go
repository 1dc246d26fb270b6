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
	InFlight    int64            `json:"inFlight"`             // of the whole process: handed over and not yet done; the most of those seen each second
	Outstanding uint64           `json:"outstanding"`          // expected by the groups, opened or only declared, and not yet received, as this process knows; likewise
	Backlog     map[string]int64 `json:"backlog,omitempty"`    // what the broker says that it holds for each group; likewise
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

// Summarise sums up the distribution of an interval.
func Summarise(h *hist.Histogram, at, seconds float64) Summary {
	q := h.Quantiles(0.5, 0.9, 0.99, 0.999)
	return Summary{At: at, Seconds: seconds, Count: h.Count(), P50: q[0], P90: q[1], P99: q[2], P999: q[3], Max: h.Max()}
}

// timed is something that is known of an interval.
type timed interface {
	end() float64
	length() float64
}

func (p Point) end() float64      { return p.At }
func (p Point) length() float64   { return p.Seconds }
func (s Summary) end() float64    { return s.At }
func (s Summary) length() float64 { return s.Seconds }

// Length is how long the intervals are, most of them, in whole seconds and at least 1: the first begins before anything was sent, and the
// last ends with the run.
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

// enoughFor are the numbers of messages that a p99, a p90 and a median need: 10 beyond each.
var enoughFor = []uint64{1000, 100, 20}

// LengthFor says how many of the intervals with so many messages are to be taken together, so that nearly all that have any have a p99
// with 10 messages beyond it: the least power of two, though no more than a tenth of the run. Where that is too few for a p99, it is
// what a p90 needs, or a median.
func LengthFor(counts []uint64) int {
	for _, enough := range enoughFor {
		for length := 1; length == 1 || length <= len(counts)/10; length *= 2 {
			if nearlyAll(counts, length, enough) {
				return length
			}
		}
	}
	return 1
}

// nearlyAll tells whether nine tenths of the intervals that have messages have enough. The first and the last that have any do not count:
// the load went on in part of them only.
func nearlyAll(counts []uint64, length int, enough uint64) bool {
	var sums []uint64
	for together := range slices.Chunk(counts, length) {
		var sum uint64
		for _, n := range together {
			sum += n
		}
		if sum > 0 {
			sums = append(sums, sum)
		}
	}
	if len(sums) > 2 {
		sums = sums[1 : len(sums)-1]
	}
	have := 0
	for _, n := range sums {
		if n >= enough {
			have++
		}
	}
	return 10*have >= 9*len(sums)
}
