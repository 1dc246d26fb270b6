package result

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// Flow is from when to when something went on in one stretch of one process, in seconds from the start: a rate is of that time.
type Flow struct {
	Stretch         // of the phase; of a whole run there is none
	Process int     `json:"process"` // which one of the results, from 0
	First   float64 `json:"first"`   // when the first came
	Last    float64 `json:"last"`
	Step    float64 `json:"step"`          // how long it took from one to the next, of those that came together from the first of them; 0 where that is not known
	Cut     bool    `json:"cut,omitempty"` // more was on its way when the stretch ended
	Count   int64   `json:"count"`
	Gaps    []Gap   `json:"gaps,omitempty"` // the longest of those between first and last, in the order of time

	topic int // among several
}

// mostGaps is how many gaps a flow has.
const mostGaps = 256

// Next is when the next after the last would have come, or when the stretch ended where it would have come before that, and did not.
func (f Flow) Next() float64 {
	if f.Cut {
		return max(f.Last+f.Step, f.To)
	}
	return f.Last + f.Step
}

// even is how long it took from one to the next on average.
func (f Flow) even() float64 {
	if f.Count < 2 {
		return 0
	}
	return (f.Last - f.First) / float64(f.Count-1)
}

// WentOn gives how much was counted, and in how much time: from when the first of it came to when the next after the last would have, or to the end of a
// stretch of a phase where more was on its way then. What comes of a load has at least its time.
func (t *Topic) WentOn(counter string) (n, seconds float64) {
	if t.of != nil {
		return t.of.WentOn(counter)
	}
	return t.came(counter), lasted(t.flows(counter), t.flows(metric.Sent.String()), t.OpenLoop, t.about())
}

// about tells whether it is known about only what was counted: in a part that was cut out of what several processes measured.
func (t *Topic) about() bool { return t.Flows != nil && t.phase != nil && t.phase.Afterwards }

// WentOn is that of all topics together.
func (r *Result) WentOn(counter string) (n, seconds float64) {
	var all, sent []Flow
	openLoop, about := true, false
	for i := range r.Topics {
		t := &r.Topics[i]
		about = about || t.about()
		n += t.came(counter)
		for _, f := range t.flows(counter) {
			f.topic = i
			all = append(all, f)
			openLoop = openLoop && t.OpenLoop
		}
		for _, f := range t.flows(metric.Sent.String()) {
			f.topic = i
			sent = append(sent, f)
		}
	}
	return n, lasted(all, sent, openLoop, about)
}

// came is how much was counted.
func (t *Topic) came(counter string) (n float64) {
	if t.Flows != nil && !t.about() { // intervals of several processes are not those of their phases
		return float64(t.Counts[counter])
	}
	for _, p := range t.History {
		n += float64(p.came()[counter])
	}
	return n
}

// flows are those of a counter, one for each stretch of each process in which it counted something.
func (t *Topic) flows(counter string) (all []Flow) {
	of := paced(counter)
	if t.Flows != nil {
		all = t.Flows[of]
		if len(all) == 0 {
			of, all = counter, t.Flows[counter]
		}
		if t.about() {
			all = counting(all, t.came(of))
		}
		return all
	}
	if !slices.ContainsFunc(t.History, func(p Point) bool { return p.came()[of] > 0 }) {
		of = counter
	}
	var length float64
	var steps int64
	for _, s := range t.stretches() {
		if f := t.flow(of, s); f.Count > 0 {
			all, length, steps = append(all, f), length+f.Last-f.First, steps+f.Count-1
		}
	}
	known := slices.ContainsFunc(t.History, func(p Point) bool { return p.knows(of) })
	pooled := t.activity(of, t.stretches()...)
	for i := range all {
		f := &all[i]
		if known && length > 0 && steps > 0 {
			even := length / float64(steps)
			if f.Count > 1 {
				even = f.even()
			}
			its := t.activity(of, f.Stretch)
			if pause := its.pause(usualShare); pause == 0 || its.once(pause) { // too few to tell
				its = pooled
			}
			if t.whole != nil && its.pause(usualShare) == 0 && f.Last-f.First < leastLoad { // a single batch: what there are in the whole run tells
				its = t.whole.activity(of, Stretch{})
			}
			sent := 0.0
			if of == metric.Sent.String() {
				sent = sentShare
			}
			f.Step = its.next(sent, even)
		}
		f.Cut = t.phase != nil && t.cutAt(f.Stretch).before(counter)
	}
	return all
}

// stretches are those of the phase that the topic is of; of a whole run it is one that has all.
func (t *Topic) stretches() []Stretch {
	if t.phase == nil {
		return []Stretch{{}}
	}
	return t.phase.union()
}

// in gives the intervals that are in a stretch.
func (t *Topic) in(s Stretch) []Point {
	if s == (Stretch{}) {
		return t.History
	}
	return within(t.History, &Phase{Stretches: []Stretch{s}})
}

// flow is what was counted in a stretch, from the first to the last.
func (t *Topic) flow(of string, s Stretch) Flow {
	f := Flow{Stretch: s}
	for _, p := range t.in(s) {
		n := p.came()[of]
		if n == 0 {
			continue
		}
		from, to := p.At-p.Seconds, p.At
		if its, ok := p.Active[of]; ok {
			from, to = its.From, its.To
		}
		if f.Count == 0 {
			f.First = from
		}
		for _, g := range p.Active[of].Gaps {
			if g[0] >= f.First {
				f.Gaps = append(f.Gaps, g)
			}
		}
		f.Last, f.Count = to, f.Count+n
	}
	if len(f.Gaps) > mostGaps {
		slices.SortFunc(f.Gaps, func(a, b Gap) int { return cmp.Compare(b[1]-b[0], a[1]-a[0]) })
		f.Gaps = f.Gaps[:mostGaps]
		slices.SortFunc(f.Gaps, func(a, b Gap) int { return cmp.Compare(a[0], b[0]) })
	}
	return f
}

// knows tells whether it is known when in the interval something was counted.
func (p Point) knows(counter string) bool {
	_, ok := p.Active[counter]
	return ok
}

func (p Point) came() map[string]int64 {
	if p.Came != nil {
		return p.Came
	}
	return p.Counts
}

// activity is that of some stretches, without what was before them.
func (t *Topic) activity(counter string, stretches ...Stretch) (all Activity) {
	usual := 0.0
	if t.whole != nil {
		usual = t.whole.activity(counter, Stretch{}).pause(usualShare)
	}
	for _, s := range stretches {
		var its Activity
		for _, p := range t.in(s) {
			its = its.and(p.Active[counter])
		}
		if t.whole != nil { // it is a phase, which another one was before
			its = its.since(usual)
		}
		all = all.and(its)
	}
	return all
}

// cutAt is what was on its way at the end of a stretch.
func (t *Topic) cutAt(s Stretch) cut {
	points := t.in(s)
	if len(points) == 0 {
		return cut{}
	}
	return cut{points[len(points)-1].Underway, t.whole.outstanding(&Phase{Stretches: []Stretch{s}})}
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

// addFlows adds those that another process had, whose topic or part of one it is.
func addFlows(all map[string][]Flow, of *Topic, process int, shift float64) map[string][]Flow {
	if all == nil {
		all = map[string][]Flow{}
	}
	added := map[string]bool{}
	for _, counter := range slices.Sorted(maps.Keys(of.Counts)) {
		key := paced(counter)
		flows := of.flows(counter)
		if !slices.ContainsFunc(of.History, func(p Point) bool { return p.came()[key] > 0 }) {
			key = counter
		}
		if added[key] {
			continue
		}
		added[key] = true
		for _, f := range flows {
			if f.Stretch != (Stretch{}) {
				f.From, f.To = f.From+shift, f.To+shift
			}
			f.Process, f.First, f.Last, f.Gaps = process, f.First+shift, f.Last+shift, slices.Clone(f.Gaps)
			for i := range f.Gaps {
				f.Gaps[i][0], f.Gaps[i][1] = f.Gaps[i][0]+shift, f.Gaps[i][1]+shift
			}
			all[key] = append(all[key], f)
		}
	}
	return all
}

// cutOut are the parts of flows that are in a stretch. What is in it of one process alone does not go on at that one's pace, but at that of all.
func cutOut(flows map[string][]Flow, s Stretch) map[string][]Flow {
	out := map[string][]Flow{}
	for counter, all := range flows {
		step := stepOf(all, counter == metric.Sent.String())
		for _, f := range all {
			if part, some := f.within(s); some {
				part.Step = min(part.Step, step)
				out[counter] = append(out[counter], part)
			}
		}
	}
	return out
}

// within is the part of a flow that is in a stretch. Of how many is not known.
func (f Flow) within(s Stretch) (part Flow, some bool) {
	part = f
	part.Stretch, part.Cut, part.Gaps, part.Count = s, false, nil, 1
	part.First, part.Last = max(f.First, s.From), min(f.Last, s.To)
	for _, g := range f.Gaps {
		if g[0] < part.First && part.First < g[1] {
			part.First = g[1]
		}
		if g[0] < part.Last && part.Last < g[1] {
			part.Last = g[0]
		}
	}
	if part.Last < part.First {
		return part, false
	}
	for _, g := range f.Gaps {
		if part.First <= g[0] && g[1] <= part.Last {
			part.Gaps = append(part.Gaps, g)
		}
	}
	return part, true
}

// counting shares out so many among parts of flows, by how long each goes on and how often it begins to.
func counting(all []Flow, n float64) []Flow {
	all = slices.Clone(all)
	weight := func(f Flow) float64 { return f.busy() + leastLoad*float64(len(f.Gaps)+1) }
	sum := 0.0
	for _, f := range all {
		sum += weight(f)
	}
	for i := range all {
		all[i].Count = max(1, int64(math.Round(n*weight(all[i])/sum)))
	}
	return all
}

// busy is how long a flow went on, but for its gaps.
func (f Flow) busy() float64 {
	busy := f.Last - f.First
	for _, g := range f.Gaps {
		busy -= g[1] - g[0]
	}
	return busy
}
