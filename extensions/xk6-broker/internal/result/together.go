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
	// batch is which part of its time gaps take of a load that comes in batches, and a batch of a phase.
	batch = 0.05
	// fewBatches are too few for a rate where it is known about only how many came: one that the cut divides would be too much of them.
	fewBatches = 8
)

// apart is how far the beginnings of processes may be apart that begin together, for so many seconds.
func apart(length float64) float64 {
	return max(beginsTogether*length, min(beginsAnyhow, anyhowUpTo*length))
}

// lasted is for how long flows went on together, in seconds: in each stretch, which the processes have at about one time, from the first to the last. What comes of a load
// goes on for as long as that, at least: what of it comes at once, what keeps it, and for how long, is the system's matter and none of the rate.
func lasted(all, sent []Flow, openLoop, about bool) (seconds float64) {
	stretches, step, asked := 0.0, 0.0, 0.0
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
		load := slices.DeleteFunc(slices.Clone(sent), func(f Flow) bool { return !group[0].sameStretch(f) })
		if len(load) > 0 {
			length := together(load, true)
			asked, seconds = asked+length, seconds+max(length, span(group))
		} else {
			length := together(group, false)
			load, asked, seconds = group, asked+length, seconds+length
		}
		if its, _, _ := union(load); len(its.Gaps) > 0 {
			step = stepOf(load, true)
		} else {
			for _, f := range load { // there may be one batch in the part
				step = max(step, f.Step)
			}
		}
		stretches += group[0].To - group[0].From
		all = rest
	}
	if openLoop && (asked < leastLoad || asked < min(once, batch*stretches)) || about && seconds < fewBatches*step {
		return 0
	}
	return seconds
}

// sameStretch tells whether two processes were in a stretch of a phase together.
func (f Flow) sameStretch(of Flow) bool {
	shorter := min(f.To-f.From, of.To-of.From)
	return min(f.To, of.To)-max(f.From, of.From) >= sameStretch*shorter || math.Abs(f.From-of.From) <= apart(shorter)
}

// together is for how long the flows of one stretch went on. What comes all the time begins and ends at edges; of what comes in batches one more pause of all processes
// together is added, as one of them may go on while another pauses.
func together(all []Flow, load bool) float64 {
	if len(all) == 1 {
		return all[0].Next() - all[0].First
	}
	if longest, same := oneBatch(all); same {
		return longest
	}
	its, first, last := union(all)
	if its.steady() {
		return byEdges(all)
	}
	return ended(all, last+stepOf(all, load)) - first
}

// span is for how long flows went on together, from the first to the last, and to the next as if all came evenly.
func span(all []Flow) float64 {
	all = slices.Clone(all)
	for i := range all {
		all[i].Step = all[i].even()
	}
	its, first, last := union(all)
	if len(all) > 1 && its.steady() {
		return byEdges(all)
	}
	return ended(all, last+(last-first)/float64(max(1, events(all)-1))) - first
}

// ended is when flows ended that are cut, or else at an instant.
func ended(all []Flow, at float64) float64 {
	for _, f := range all {
		if f.Cut {
			at = max(at, f.To)
		}
	}
	return at
}

// steady tells whether there are next to no gaps.
func (a Activity) steady() bool {
	gaps := 0.0
	for _, g := range a.Gaps {
		gaps += g[1] - g[0]
	}
	return gaps < batch*(a.To-a.From)
}

// stepOf is how long it takes from one to the next of all flows together.
func stepOf(all []Flow, load bool) float64 {
	its, first, last := union(all)
	sent := 0.0
	if load {
		sent = sentTogetherShare
	}
	return its.next(sent, (last-first)/float64(max(1, events(all)-1)))
}

func events(all []Flow) (n int64) {
	for _, f := range all {
		n += f.Count
	}
	return n
}

// oneBatch tells whether a single batch came, of which the processes have parts: at one time, or at that of their stretches, which do not begin and end at one time. It
// gives for how long it came to one of them.
func oneBatch(all []Flow) (longest float64, same bool) {
	for _, f := range all {
		apart := min(math.Abs(f.First-all[0].First), math.Abs(f.First-f.From-all[0].First+all[0].From), math.Abs(f.First-f.To-all[0].First+all[0].To))
		if f.Last-f.First > leastLoad || apart > once {
			return 0, false
		}
		longest = max(longest, f.Next()-f.First)
	}
	return longest, true
}

// union is the activity of all flows together. What several processes have of a batch they have at about one time.
func union(all []Flow) (its Activity, first, last float64) {
	var busy []Gap // between the gaps
	events, least := int64(0), LeastGap
	if slices.ContainsFunc(all, func(f Flow) bool { return f.Process != all[0].Process }) {
		least = once
	}
	for _, f := range all {
		from := f.First
		for _, g := range f.Gaps {
			busy, from = append(busy, Gap{from, g[0]}), g[1]
		}
		busy, events = append(busy, Gap{from, f.Last}), events+f.Count
	}
	if len(busy) == 0 {
		return its, 0, 0
	}
	slices.SortFunc(busy, func(a, b Gap) int { return cmp.Compare(a[0], b[0]) })
	first, last = busy[0][0], busy[0][1]
	its.Pauses = map[int]Pauses{}
	rest := 0.0
	for _, b := range busy {
		if pause := b[0] - last; pause >= least {
			its.Gaps = append(its.Gaps, Gap{last, b[0]})
			its.pauses(Pauses{1, pause})
		} else {
			rest += max(0, pause)
		}
		rest += max(0, b[1]-max(b[0], last))
		last = max(last, b[1])
	}
	if n := events - 1 - int64(len(its.Gaps)); n > 0 && rest > 0 {
		its.pauses(Pauses{n, rest})
	}
	its.From, its.To = first, last
	return its, first, last
}

// pauses adds some that are alike.
func (a *Activity) pauses(p Pauses) {
	n := int(math.Log2(p.Seconds / float64(p.Count) * 1e9))
	a.Pauses[n] = a.Pauses[n].and(p)
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

// weighted is a mean.
type weighted struct{ sum, weight float64 }

func (m *weighted) add(value float64, weight int64) {
	m.sum += value * float64(weight)
	m.weight += float64(weight)
}

func (m weighted) mean() float64 { return m.sum / m.weight }
