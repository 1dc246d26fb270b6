package recording

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Parts are the distributions that make up one.
type Parts []hist.Packed

// Histogram returns the distribution of all parts; nil if there are none.
func (p Parts) Histogram() *hist.Histogram {
	if len(p) == 0 {
		return nil
	}
	h := &hist.Histogram{}
	for _, packed := range p {
		packed.AddTo(h)
	}
	return h
}

// Count returns how many values the parts have.
func (p Parts) Count() (n uint64) {
	for _, packed := range p {
		n += packed.Count
	}
	return n
}

// Sums is the sum of the records of one key.
type Sums struct {
	Counts      Counts
	Errors      Errors
	Latencies   [NumLoops][NumTrends]Parts
	Spans       Spans
	Outstanding uint64 // the most
	Backlog     *int64 // the most; nil if it is not known
}

// Sum adds up the records of intervals whose keys match, by their keys. A nil match takes all.
func Sum(intervals []*Interval, match func(Key) bool) map[Key]*Sums {
	sums := map[Key]*Sums{}
	for _, i := range intervals {
		for k := range i.Records {
			r := &i.Records[k]
			if match != nil && !match(r.Key) {
				continue
			}
			if sums[r.Key] == nil {
				sums[r.Key] = &Sums{}
			}
			sums[r.Key].add(r)
		}
	}
	return sums
}

func (s *Sums) add(r *Record) {
	for c, n := range r.Counts {
		s.Counts[c] += n
	}
	s.Errors = s.Errors.with(r.Errors)
	s.Spans = s.Spans.and(r.Spans)
	s.Outstanding = max(s.Outstanding, r.Outstanding)
	s.Backlog = most(s.Backlog, r.Backlog)
	for l := range r.Latencies {
		for t, packed := range r.Latencies[l] {
			if !packed.Empty() {
				s.Latencies[l][t] = append(s.Latencies[l][t], packed)
			}
		}
	}
}

// Hiccups adds up the hiccups in phases that match, or in all; nil if there are none.
func Hiccups(intervals []*Interval, match func(phase string) bool) *hist.Histogram {
	var all Parts
	for _, i := range intervals {
		for phase, h := range i.Hiccups {
			if match == nil || match(phase) {
				all = append(all, h)
			}
		}
	}
	return all.Histogram()
}

// View reads a recording, with instants in seconds from the start of the test.
type View struct {
	rec     *Recording
	started time.Time
	sums    map[Key]*Sums
}

// View returns a view of the recording.
func (r *Recording) View(started time.Time) *View { return &View{r, started, Sum(r.intervals, nil)} }

// Measurement is everything that a recording has of one topic.
type Measurement struct {
	Window        // of the whole run
	Open     bool // it has an open loop
	Spans    map[string]Extent
	History  []Point
	OverTime map[string][]Summary
	Phases   map[string]Window // by name; nil if the run is one
}

// Measure returns the measurement of a topic.
func (v *View) Measure(s Subject) Measurement {
	own := matching(v.sums, s.matches)
	for _, sum := range own { // messages of another process may be of an open loop, too
		s.Open = s.Open || len(sum.Latencies[Open][E2ELatency]) > 0
	}
	m := Measurement{Window: s.window(own), Open: s.Open, Spans: v.extents(own)}
	m.History, m.OverTime = v.history(s)
	for _, p := range v.Phases() {
		if m.Phases == nil {
			m.Phases = map[string]Window{}
		}
		m.Phases[p.Name] = s.window(matching(own, func(k Key) bool { return during(p.Name, k.Phase) }))
	}
	return m
}

// Hiccups returns the hiccups of the machine.
func (v *View) Hiccups() *hist.Histogram {
	return cmp.Or(Hiccups(v.rec.intervals, nil), &hist.Histogram{})
}

// since converts an instant.
func (v *View) since(at int64) float64 { return time.Duration(at - v.started.UnixNano()).Seconds() }

// during reports whether a recorded phase is the one of this name.
func during(name, recorded string) bool { return name == cmp.Or(recorded, Starting) }

// Phases lists the phases in the order in which they began; none if the run is one. The time before
// the first named phase is one itself if anything was measured in it.
func (v *View) Phases() (phases []Phase) {
	if !slices.ContainsFunc(v.rec.entries, func(e Entry) bool { return e.Phase != "" }) {
		return nil
	}
	before := len(matching(v.sums, func(k Key) bool { return during(Starting, k.Phase) })) > 0
	lengths := map[string]map[int]float64{} // by phase and process
	for _, e := range v.rec.entries {
		name := cmp.Or(e.Phase, Starting)
		if name == Starting && !before {
			continue
		}
		i := slices.IndexFunc(phases, func(p Phase) bool { return p.Name == name })
		if i < 0 {
			i = len(phases)
			hiccups := Hiccups(v.rec.intervals, func(phase string) bool { return during(name, phase) })
			phases = append(phases, Phase{Name: name, Hiccups: hiccups})
			lengths[name] = map[int]float64{}
		}
		phases[i].Stretches = append(phases[i].Stretches, Stretch{v.since(e.From), v.since(e.To)})
		lengths[name][e.Process] += time.Duration(e.To - e.From).Seconds()
	}
	several := len(v.rec.Begins()) > 1
	for i := range phases {
		own := lengths[phases[i].Name]
		phases[i].Seconds = slices.Max(slices.Collect(maps.Values(own)))
		if several {
			phases[i].Processes = len(own)
		}
	}
	return phases
}

// Begins returns when each process began each named phase, in ns since the Unix epoch.
func (r *Recording) Begins() (all []map[string][]int64) {
	for _, e := range r.entries {
		for len(all) <= e.Process {
			all = append(all, map[string][]int64{})
		}
		if !during(Starting, e.Phase) {
			all[e.Process][e.Phase] = append(all[e.Process][e.Phase], e.From)
		}
	}
	return all
}

// Cut returns the phase from one time to another, in seconds from the start, and the windows of
// topics in it. It has the intervals whose middle is in that time.
func (r *Recording) Cut(started time.Time, from, to float64) (p Phase, window func(Subject) Window, err error) {
	v := &View{rec: r, started: started}
	inside := slices.DeleteFunc(slices.Clone(r.intervals), func(i *Interval) bool {
		middle := (v.since(i.From) + v.since(i.To)) / 2
		return middle < from || middle > to
	})
	if len(inside) == 0 {
		return p, nil, fmt.Errorf("no interval is recorded from %g s to %g s", from, to)
	}
	s := Stretch{v.since(inside[0].From), v.since(inside[len(inside)-1].To)}
	name := fmt.Sprintf("%.1f s to %.1f s", s.From, s.To)
	p = Phase{Name: name, Stretches: []Stretch{s}, Seconds: s.To - s.From, Hiccups: Hiccups(inside, nil), Afterwards: true}
	return p, func(s Subject) Window { return s.window(Sum(inside, s.matches)) }, nil
}

// Extent is from when to when something was counted, in seconds from the start.
type Extent struct {
	First float64 `json:"first"`
	Last  float64 `json:"last"`
}

// leastTime is how many seconds a rate needs.
const leastTime = 1

// extents returns the extents of the [Timed] counters, by name.
func (v *View) extents(own map[Key]*Sums) map[string]Extent {
	var spans Spans
	for _, s := range own {
		spans = spans.and(s.Spans)
	}
	all := map[string]Extent{}
	for i, c := range Timed {
		if s := spans[i]; s.First != 0 {
			all[c.String()] = Extent{v.since(s.First), v.since(s.Last)}
		}
	}
	return all
}

// JoinExtents adds the extents of further counts.
func JoinExtents(all, more map[string]Extent) {
	for name, e := range more {
		if have, ok := all[name]; ok {
			e = Extent{min(have.First, e.First), max(have.Last, e.Last)}
		}
		all[name] = e
	}
}

// RateTime returns the seconds that a counter's rate is divided by: from the first send to the last
// send or count, and only the part in a phase, if one is given. It returns 0 if that is too short
// for a rate.
func RateTime(counter string, extents map[string]Extent, phase *Phase) (seconds float64) {
	all, counted := extents[timedBy(counter).String()]
	if first, ok := extents[Sent.String()]; ok && counted {
		all = Extent{min(first.First, all.First), max(first.Last, all.Last)}
	} else if ok {
		all = first
	}
	seconds = all.Last - all.First
	if phase != nil {
		seconds = 0
		for _, s := range phase.Stretches {
			seconds += max(0, min(s.To, all.Last)-max(s.From, all.First))
		}
		seconds /= float64(max(1, phase.Processes)) // each has the phase
	}
	if seconds < leastTime {
		return 0
	}
	return seconds
}

// timedBy returns the timed counter that a counter is counted with.
func timedBy(counter string) Counter {
	switch counter {
	case Due.String(), Sent.String(), BytesSent.String():
		return Sent
	case Confirmed.String():
		return Confirmed
	}
	return Received
}
