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
	First   float64 `json:"first"` // when the first came
	Next    float64 `json:"next"`  // when the next after the last would have come, or when the stretch ended where more was on its way then
	Step    float64 `json:"step"`  // how long it took from one to the next
	Count   int64   `json:"count"`
}

// WentOn gives how much was counted, and in how much time: from when the first of it came to when the next after the last would have, or to the end of a
// stretch of a phase where more was on its way then.
func (t *Topic) WentOn(counter string) (n, seconds float64) {
	if t.of != nil {
		return t.of.WentOn(counter)
	}
	return t.came(counter), lasted(t.flows(counter))
}

// WentOn is that of all topics together.
func (r *Result) WentOn(counter string) (n, seconds float64) {
	var all []Flow
	for i := range r.Topics {
		n += r.Topics[i].came(counter)
		all = append(all, r.Topics[i].flows(counter)...)
	}
	return n, lasted(all)
}

// came is how much was counted.
func (t *Topic) came(counter string) (n float64) {
	if t.Flows != nil && (t.phase == nil || !t.phase.Afterwards) { // intervals of several processes are not those of their phases
		return float64(t.Counts[counter])
	}
	for _, p := range t.History {
		n += float64(p.came()[counter])
	}
	return n
}

// leastLoad is for how many seconds a load that goes by a schedule goes on, at least, to have a rate: a batch that comes but once has none.
const leastLoad = 0.01

// flows are those of a counter, one for each stretch of each process in which it counted something.
func (t *Topic) flows(counter string) (all []Flow) {
	of := paced(counter)
	if t.Flows != nil {
		all = t.Flows[of]
		if len(all) == 0 {
			all = t.Flows[counter]
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
			all, length, steps = append(all, f), length+f.Next-f.First, steps+f.Count-1
		}
	}
	if length > 0 && steps > 0 && slices.ContainsFunc(t.History, func(p Point) bool { return p.knows(of) }) {
		its, sent := t.activity(of), t.activity(metric.Sent.String())
		for i := range all {
			f := &all[i]
			even := length / float64(steps)
			if f.Count > 1 {
				even = (f.Next - f.First) / float64(f.Count-1)
			}
			f.Step = its.next(sent, even)
			f.Next += f.Step
		}
	}
	for i := range all {
		if f := &all[i]; t.phase != nil && t.cutAt(f.Stretch).before(counter) {
			f.Next = f.To
		}
	}
	if t.OpenLoop && lasted(all) < leastLoad {
		for i := range all {
			all[i].Next = all[i].First
		}
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
		f.Next, f.Count = to, f.Count+n
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

// activity is that of all stretches, without what was before them.
func (t *Topic) activity(counter string) (all Activity) {
	usual := 0.0
	if t.whole != nil {
		usual = t.whole.activity(counter).pause(usualShare)
	}
	for _, s := range t.stretches() {
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
func addFlows(all map[string][]Flow, of *Topic, shift float64) map[string][]Flow {
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
			f.First, f.Next = f.First+shift, f.Next+shift
			all[key] = append(all[key], f)
		}
	}
	return all
}

// cutOut are the parts of flows that are in a stretch.
func cutOut(flows map[string][]Flow, s Stretch) map[string][]Flow {
	out := map[string][]Flow{}
	for counter, all := range flows {
		for _, f := range all {
			if first, next := max(f.First, s.From), min(f.Next, s.To); first < next {
				share := (next - first) / (f.Next - f.First)
				out[counter] = append(out[counter], Flow{s, first, next, f.Step, int64(math.Ceil(share * float64(f.Count)))})
			}
		}
	}
	return out
}

const (
	// beginsTogether is which part of their time the beginnings of processes may be apart, and anyhow by how many seconds, but for a quarter of it.
	beginsTogether = 0.05
	beginsAnyhow   = 0.5
	anyhowUpTo     = 0.25
	// sameStretch is which part of the shorter one of two stretches is in the other, if they are the same of two processes.
	sameStretch = 0.5
)

// lasted is for how long flows went on together, in seconds: those of a stretch, which the processes have at about one time, from the first to the last.
func lasted(all []Flow) (seconds float64) {
	all = slices.SortedStableFunc(slices.Values(all), func(a, b Flow) int { return cmp.Compare(a.From, b.From) })
	for len(all) > 0 {
		first, n := all[0].Stretch, 1
		for n < len(all) && first.overlap(all[n].Stretch) >= sameStretch*min(first.To-first.From, all[n].To-all[n].From) {
			n++
		}
		seconds += spanOf(all[:n])
		all = all[n:]
	}
	return seconds
}

func (s Stretch) overlap(of Stretch) float64 { return min(s.To, of.To) - max(s.From, of.From) }

// spanOf is from when the first of some flows began to when the last ended. Those that began, or ended, at about one time did so on average, by what they counted:
// the loads of processes go on together, though one sends a little before the other.
func spanOf(all []Flow) float64 {
	first, last := math.Inf(1), math.Inf(-1)
	for _, f := range all {
		first, last = min(first, f.First), max(last, f.Next)
	}
	near := max(beginsTogether*(last-first), min(beginsAnyhow, anyhowUpTo*(last-first)))
	var begins, ends mean
	for _, f := range all {
		if f.First-first <= max(near, f.Step) {
			begins.add(f.First, f.Count)
		}
		if last-f.Next <= max(near, f.Step) {
			ends.add(f.Next, f.Count)
		}
	}
	return ends.sum/ends.weight - begins.sum/begins.weight
}

// mean is a weighted one.
type mean struct{ sum, weight float64 }

func (m *mean) add(value float64, weight int64) {
	m.sum += value * float64(weight)
	m.weight += float64(weight)
}
