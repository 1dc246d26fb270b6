package recording

import (
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// The names of phases with a meaning.
const (
	Starting = "start"    // the time before the first named phase
	WarmUp   = "warmup"   // in no measured window
	Measured = "measured" // the measured window, which leads
)

// BusyWindow is the length in seconds of the windows of [Interval] Busiest.
const BusyWindow = 5.0

// ClockSkew is how far clocks may be apart, and how much later a process may begin.
const ClockSkew = 5 * time.Second

// Phase is a part of the run's time: one stretch or, if it came again, several. A latency belongs
// to the phase in which its message was due, a count to the phase in which it happened.
type Phase struct {
	Name      string          `json:"name"`
	Stretches []Stretch       `json:"stretches"`
	Processes int             `json:"processes,omitempty"` // whose stretches these are, of several
	Seconds   float64         `json:"seconds"`             // of all its stretches; the most of one process
	Hiccups   *hist.Histogram `json:"hiccups,omitempty"`   // of the machine

	Afterwards bool `json:"-"` // it was cut out of a finished run
}

// Stretch is the time between two instants, in seconds from the start.
type Stretch struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// ErrorCount counts errors of one sort.
type ErrorCount struct {
	Op    string `json:"op"`
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
}

// Percentile is one point of a distribution. The verdict sets whether it is reliable.
type Percentile struct {
	hist.Percentile
	Owed     float64 `json:"owed"`     // the share that may be delay of the generator or its machine, 0 to 1
	Believed bool    `json:"believed"` // it is supported, and neither delay, missing messages nor clocks can mislead
}

// Window is the measurement of a topic in a phase. The windows of all phases add up to the run.
type Window struct {
	Counts      map[string]int64           `json:"counts"`
	Errors      []ErrorCount               `json:"errors"`
	Trends      map[string]*hist.Histogram `json:"trends"`
	Percentiles map[string][]Percentile    `json:"percentiles"`
	Groups      []WindowGroup              `json:"groups"`
}

// WindowGroup is the measurement of a group in a phase. Its account is of the whole run only.
type WindowGroup struct {
	Group       string                     `json:"group"`
	Received    uint64                     `json:"received"` // copies included
	Settled     uint64                     `json:"settled"`  // acknowledged, requeued or rejected
	Trends      map[string]*hist.Histogram `json:"trends"`
	Percentiles map[string][]Percentile    `json:"percentiles"`
}

// AddErrors adds to the count of one sort. The counts are sorted by operation and kind.
func AddErrors(all []ErrorCount, more ErrorCount) []ErrorCount {
	i, found := slices.BinarySearchFunc(all, more, func(a, b ErrorCount) int {
		return ErrorKey{a.Op, a.Kind}.compare(ErrorKey{b.Op, b.Kind})
	})
	if !found {
		all = slices.Insert(all, i, ErrorCount{Op: more.Op, Kind: more.Kind})
	}
	all[i].Count += more.Count
	return all
}

// Subject is a topic whose measurement is asked for.
type Subject struct {
	Broker, Driver, Topic string
	Groups                []string
	Open                  bool // it has an open loop; if not, its closed loop has the plain names
}

func (s Subject) matches(k Key) bool {
	return k.Broker == s.Broker && k.Driver == s.Driver && k.Topic == s.Topic
}

// trend returns the subject's name of a trend.
func (s Subject) trend(t Trend, l Loop) string {
	if !s.Open {
		return t.String()
	}
	return t.In(l)
}

// matching returns the sums whose keys match.
func matching(all map[Key]*Sums, match func(Key) bool) map[Key]*Sums {
	own := map[Key]*Sums{}
	for key, sum := range all {
		if match(key) {
			own[key] = sum
		}
	}
	return own
}

// window adds up sums of the subject.
func (s Subject) window(own map[Key]*Sums) Window {
	w := Window{
		Counts: map[string]int64{}, Errors: []ErrorCount{}, Trends: map[string]*hist.Histogram{}, Groups: []WindowGroup{},
	}
	for _, group := range s.Groups {
		w.Groups = append(w.Groups, WindowGroup{Group: group, Trends: map[string]*hist.Histogram{}})
	}
	for key, sum := range own {
		addCounts(w.Counts, sum)
		for e, n := range sum.Errors {
			w.Errors = AddErrors(w.Errors, ErrorCount{e.Op, e.Kind, n})
		}
		group := slices.Index(s.Groups, key.Group)
		s.eachLatency(sum, func(t Trend, name string, parts Parts) {
			h := parts.Histogram()
			w.Trends[name] = hist.Merged(w.Trends[name], h)
			if group >= 0 && t.Consumers() {
				own := w.Groups[group].Trends
				own[name] = hist.Merged(own[name], h)
			}
		})
		if group >= 0 {
			settled := sum.Counts[Acked] + sum.Counts[Requeued] + sum.Counts[Rejected]
			w.Groups[group].Received += uint64(sum.Counts[Received]) //gosec:disable G115 -- a count
			w.Groups[group].Settled += uint64(settled)               //gosec:disable G115 -- a count
		}
	}
	return w
}

// eachLatency calls do for each latency of a sum, with the subject's name of its trend.
func (s Subject) eachLatency(sum *Sums, do func(t Trend, name string, parts Parts)) {
	for l := range Loop(NumLoops) {
		for t := range Trend(NumTrends) {
			if parts := sum.Latencies[l][t]; len(parts) > 0 {
				do(t, s.trend(t, l), parts)
			}
		}
	}
}

// addCounts adds the counts that are not 0, by name.
func addCounts(to map[string]int64, sum *Sums) {
	for c := range Counter(NumCounters) {
		if n := sum.Counts[c]; n != 0 {
			to[c.String()] += n
		}
	}
}
