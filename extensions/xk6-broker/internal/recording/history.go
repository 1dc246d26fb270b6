package recording

import (
	"cmp"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Point is one interval of a topic's history: about a second or, of a long run, several.
type Point struct {
	At          float64          `json:"at"`      // seconds from the start to the end of the interval
	Seconds     float64          `json:"seconds"` // its length
	Counts      map[string]int64 `json:"counts"`
	Errors      int64            `json:"errors"`
	ErrorKinds  map[string]int64 `json:"errorKinds,omitempty"` // the errors by kind
	InFlight    int64            `json:"inFlight"`             // sent and not confirmed; the most that was seen
	Outstanding uint64           `json:"outstanding"`          // expected by the groups and not received yet; likewise
	Backlog     map[string]int64 `json:"backlog,omitempty"`    // messages at the broker for each group; likewise
	CPU         float64          `json:"cpu"`                  // the mean share of its CPUs that the process used
	Busiest     float64          `json:"busiest"`              // the same, in the worst 5 seconds under load
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

func (p Point) stretch() Stretch   { return Stretch{p.At - p.Seconds, p.At} }
func (s Summary) stretch() Stretch { return Stretch{s.At - s.Seconds, s.At} }

// timed is a statement about a time.
type timed interface{ stretch() Stretch }

// Length returns the median length of intervals, in whole seconds and at least 1.
func Length[T timed](all []T) float64 {
	lengths := make([]float64, len(all))
	for i, one := range all {
		lengths[i] = one.stretch().To - one.stretch().From
	}
	slices.Sort(lengths)
	if len(lengths) == 0 {
		return 1
	}
	return max(1, math.Round(lengths[len(lengths)/2]))
}

// Within returns the intervals that are wholly in a phase.
func Within[T timed](all []T, p *Phase) (inside []T) {
	const edge = 1e-6 // by which two texts of one instant may differ
	for _, one := range all {
		own := one.stretch()
		if slices.ContainsFunc(p.Stretches, func(s Stretch) bool { return own.From >= s.From-edge && own.To <= s.To+edge }) {
			inside = append(inside, one)
		}
	}
	return inside
}

// cell is an interval of a history, with the intervals of each process that end in it.
type cell struct {
	at, seconds float64
	processes   map[int][]*Interval
}

// cells returns the intervals of the histories. With several processes each is as long as their
// longest interval.
func (v *View) cells() (cells []cell) {
	several, width := false, time.Second
	for _, i := range v.rec.intervals {
		several = several || i.Process > 0
		width = max(width, time.Duration(i.To-i.From).Round(time.Second))
	}
	for _, i := range v.rec.intervals {
		at, seconds := v.since(i.To), time.Duration(i.To-i.From).Seconds()
		if several {
			at, seconds = v.since(v.end(i.To, width)), width.Seconds()
		}
		if last := len(cells) - 1; last < 0 || cells[last].at != at {
			cells = append(cells, cell{at, seconds, map[int][]*Interval{}})
		}
		own := cells[len(cells)-1].processes
		own[i.Process] = append(own[i.Process], i)
	}
	return cells
}

// end returns the end of the cell, of a width, in which an interval ends.
func (v *View) end(at int64, width time.Duration) int64 {
	at = max(v.started.UnixNano()+1, time.Unix(0, at).Round(time.Second).UnixNano())
	return (at + int64(width) - 1) / int64(width) * int64(width)
}

// history returns the history of a topic, and its latencies over time.
func (v *View) history(s Subject) ([]Point, map[string][]Summary) {
	cells := v.cells()
	points, latencies := make([]Point, len(cells)), map[string][]Parts{} // the latencies of each cell
	for n, c := range cells {
		points[n] = Point{At: c.at, Seconds: c.seconds, Counts: map[string]int64{}, ErrorKinds: map[string]int64{}}
		for _, intervals := range c.processes {
			own := Sum(intervals, s.matches)
			points[n].add(intervals, own)
			for _, sum := range own {
				s.eachLatency(sum, func(_ Trend, name string, parts Parts) {
					if latencies[name] == nil {
						latencies[name] = make([]Parts, len(cells))
					}
					latencies[name][n] = append(latencies[name][n], parts...)
				})
			}
		}
	}
	overTime := map[string][]Summary{}
	for name, all := range latencies {
		overTime[name] = summaries(cells, all)
	}
	return points, overTime
}

// add adds what one process has of a topic.
func (p *Point) add(intervals []*Interval, own map[Key]*Sums) {
	var inFlight int64
	for _, i := range intervals {
		p.CPU, p.Busiest = max(p.CPU, i.CPU), max(p.Busiest, i.Busiest)
		inFlight = max(inFlight, i.InFlight)
	}
	p.InFlight += inFlight
	outstanding := map[string]uint64{} // for each group
	for key, sum := range own {
		addCounts(p.Counts, sum)
		for e, n := range sum.Errors {
			p.Errors += n
			p.ErrorKinds[e.Kind] += n
		}
		outstanding[key.Group] = max(outstanding[key.Group], sum.Outstanding)
		if sum.Backlog != nil {
			if p.Backlog == nil {
				p.Backlog = map[string]int64{}
			}
			p.Backlog[key.Group] = max(p.Backlog[key.Group], *sum.Backlog)
		}
	}
	for _, n := range outstanding {
		p.Outstanding += n
	}
}

// summaries summarises the latencies of cells.
func summaries(cells []cell, all []Parts) (summaries []Summary) {
	for joined := range slices.Chunk(all, lengthFor(all)) {
		h := cmp.Or(slices.Concat(joined...).Histogram(), &hist.Histogram{})
		from := cells[0]
		to := cells[len(joined)-1]
		cells = cells[len(joined):]
		summaries = append(summaries, Summary{
			At: to.at, Seconds: to.at - from.at + from.seconds, Count: h.Count(), Max: h.Max(),
			P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99), P999: h.Quantile(0.999),
		})
	}
	return summaries
}

// lengthFor returns how many cells to join, so that on average they support a p99: a power of two,
// and at most a tenth of the run. If that is too few, they support a p90, or a median.
func lengthFor(cells []Parts) int {
	total, busy := uint64(0), uint64(0)
	for _, parts := range cells {
		if n := parts.Count(); n > 0 {
			total, busy = total+n, busy+1
		}
	}
	for _, least := range []uint64{1000, 100, 20} {
		for length := 1; length == 1 || length <= len(cells)/10; length *= 2 {
			if total*uint64(length) >= least*busy { //gosec:disable G115 -- a small number
				return length
			}
		}
	}
	return 1
}

// WriteLog writes the distributions of a topic's trend in each interval in the format .hlog. The
// tag of a closed loop is "closed".
func (v *View) WriteLog(w io.Writer, s Subject, trend Trend) error {
	log, err := hist.NewLog(w, v.started)
	if err != nil {
		return err
	}
	at := func(seconds float64) time.Time { return v.started.Add(time.Duration(seconds * float64(time.Second))) }
	for _, c := range v.cells() {
		var parts [NumLoops]Parts
		for _, sum := range Sum(slices.Concat(slices.Collect(maps.Values(c.processes))...), s.matches) {
			for l := range parts {
				parts[l] = append(parts[l], sum.Latencies[l][trend]...)
			}
		}
		for l, tag := range []string{Open: "", Closed: Closed.String()} {
			if len(parts[l]) == 0 {
				continue
			}
			if err := log.Write(tag, at(c.at-c.seconds), at(c.at), parts[l].Histogram()); err != nil {
				return err
			}
		}
	}
	return nil
}
