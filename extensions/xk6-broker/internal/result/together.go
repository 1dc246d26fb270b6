package result

import (
	"cmp"
	"math"
	"slices"
)

const (
	// leastLoad is for how many seconds a load that goes by a schedule goes on, at least, to have a rate: a batch that comes but once has none.
	leastLoad = 0.01
	// What comes but once in each of several processes comes together where it is no further apart than this, and a phase in which something comes for no longer has no
	// rate of it either, if that is next to nothing of its time.
	once = 0.1

	// Processes begin together where their beginnings are no further apart than a part of their time, and anyhow by so many seconds, but for a greater part of it.
	beginsTogether = 0.05
	beginsAnyhow   = 0.5
	anyhowUpTo     = 0.25

	// sameStretch is which part of the shorter one of two stretches is in the other, if they are the same of two processes.
	sameStretch = 0.5
	// inBatches is how many times as long a step is as it would be if they came one by one, where they come together, and batch which part of the time all
	// of a process came in that came together.
	inBatches, batch = 2, 0.05
	// inStep is which part of a step two processes may be apart that take it together.
	inStep = 0.05
)

// apart is how far the beginnings of processes may be apart that begin together, for so many seconds.
func apart(length float64) float64 {
	return max(beginsTogether*length, min(beginsAnyhow, anyhowUpTo*length))
}

// lasted is for how long flows went on together, in seconds: in each stretch, which the processes have at about one time, from the first to the last.
func lasted(all []Flow, openLoop bool) (seconds float64) {
	stretches := 0.0
	all = slices.SortedStableFunc(slices.Values(all), func(a, b Flow) int { return cmp.Compare(a.From, b.From) })
	for len(all) > 0 {
		var group, rest []Flow
		for _, f := range all {
			if !slices.ContainsFunc(group, func(of Flow) bool { return of.Process == f.Process && of.topic == f.topic }) && (len(group) == 0 || group[0].sameStretch(f)) {
				group = append(group, f)
			} else {
				rest = append(rest, f)
			}
		}
		seconds, stretches = seconds+together(group), stretches+group[0].To-group[0].From
		all = rest
	}
	if openLoop && (seconds < leastLoad || seconds < min(once, batch*stretches)) {
		return 0
	}
	return seconds
}

// sameStretch tells whether two processes were in a stretch of a phase together.
func (f Flow) sameStretch(of Flow) bool {
	shorter := min(f.To-f.From, of.To-of.From)
	return min(f.To, of.To)-max(f.From, of.From) >= sameStretch*shorter || math.Abs(f.From-of.From) <= apart(shorter)
}

// together is for how long the flows of one stretch went on.
func together(all []Flow) float64 {
	first, last := ends(all)
	var stepping, steady int64
	all = slices.Clone(all)
	for i := range all {
		f := &all[i]
		if long := f.Last - f.First; long < max(batch*(last-first), leastLoad) && f.Step < max(long, leastLoad) {
			f.Step = 0 // this one was within the batch
		}
		if f.batches() {
			stepping += f.Count
		} else {
			steady += f.Count
		}
	}
	if stepping > steady {
		return bySteps(all)
	}
	return byEdges(all)
}

// ends are when the first of the flows began and the last ended.
func ends(all []Flow) (first, last float64) {
	first, last = math.Inf(1), math.Inf(-1)
	for _, f := range all {
		first, last = min(first, f.First), max(last, f.Last)
	}
	return first, last
}

// batches tells whether several came together, and then others a while later, or all at once.
func (f Flow) batches() bool {
	return f.Step == 0 || f.Count < 2 || f.Step > inBatches*(f.Last-f.First)/float64(f.Count-1)
}

// byEdges is for loads that go on all the time: from when the first began to when the last ended. Those that began, or ended, at about one time did so on average,
// by what they counted: their processes have parts of one load, and one is a little ahead of the other. What began with its stretch began with those of the others.
func byEdges(all []Flow) float64 {
	all = slices.Clone(all)
	begun := all[0].From
	for i := range all {
		if f := &all[i]; f.From > 0 && f.First-f.From <= 2*f.Step && math.Abs(f.From-begun) <= apart(f.To-f.From) {
			f.First, f.Last, f.To, f.From = f.First-f.From+begun, f.Last-f.From+begun, f.To-f.From+begun, begun
		}
	}
	first, last := math.Inf(1), math.Inf(-1)
	for _, f := range all {
		first, last = min(first, f.First), max(last, f.Next())
	}
	var begins, ends weighted
	for _, f := range all {
		near := max(apart(last-first), f.Step)
		if f.First-first <= near {
			begins.add(f.First, f.Count)
		}
		if last-f.Next() <= near {
			ends.add(f.Next(), f.Count)
		}
	}
	return ends.mean() - begins.mean()
}

// bySteps is for loads of which each step takes a while, such as a batch now and then: from the first to the last, and one more step of all processes together, which
// is shorter than that of each where they go by turns.
func bySteps(all []Flow) float64 {
	first, last := ends(all)
	var kinds []Flow // one of those that go in step
	for _, f := range slices.SortedStableFunc(slices.Values(all), func(a, b Flow) int { return cmp.Compare(b.Last-b.First, a.Last-a.First) }) {
		if !slices.ContainsFunc(kinds, func(of Flow) bool { return of.inStep(f) }) {
			kinds = append(kinds, f)
		}
	}
	steps, often, longest := -1.0, 0.0, 0.0
	for _, f := range kinds {
		steps, longest = steps+1, max(longest, f.Next()-f.First)
		if f.Step > 0 {
			steps += (f.Last - f.First) / f.Step
			often += 1 / f.Step
		}
	}
	step := 1 / often
	if steps > 0 {
		step = min(step, (last-first)/steps)
	}
	if math.IsInf(step, 1) { // what came but once
		return longest
	}
	end := last + step
	for _, f := range all {
		if f.Cut {
			end = max(end, f.To)
		}
	}
	return end - first
}

// inStep tells whether what came in another process came with what came in this one.
func (f Flow) inStep(of Flow) bool {
	apart := math.Abs(f.First - of.First)
	if f.Step == 0 { // the stretches of processes do not begin and end at one time
		return min(apart, math.Abs(f.First-f.From-of.First+of.From), math.Abs(f.First-f.To-of.First+of.To)) <= once
	}
	near, later := max(inStep*f.Step, leastLoad), math.Abs(f.Last-of.Last)
	if apart <= near && later <= near {
		return true
	}
	if of.Step != 0 && math.Abs(of.Step/f.Step-1) > inStep {
		return false
	}
	apart, later = math.Mod(apart, f.Step), math.Mod(later, f.Step)
	return min(apart, f.Step-apart, later, f.Step-later) <= near
}

// weighted is a mean.
type weighted struct{ sum, weight float64 }

func (m *weighted) add(value float64, weight int64) {
	m.sum += value * float64(weight)
	m.weight += float64(weight)
}

func (m weighted) mean() float64 { return m.sum / m.weight }
