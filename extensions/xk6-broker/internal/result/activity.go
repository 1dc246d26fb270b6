package result

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Activity is when something was counted in an interval: first, last, and what pauses ended in it, which may have begun before. All are in seconds, From and To
// from the start.
type Activity struct {
	From   float64        `json:"from"`
	To     float64        `json:"to"`
	Pauses map[int]Pauses `json:"pauses,omitempty"` // under N those from 2^N ns to twice that
	Before float64        `json:"before,omitempty"` // the one of them that ended at From
	Gaps   []Gap          `json:"gaps,omitempty"`   // the longest pauses that ended in it
}

// Gap is from when to when nothing was counted, in seconds from the start.
type Gap [2]float64

// LeastGap is how long a gap is at least, in seconds.
const LeastGap = 0.05

// Pauses are those of one length.
type Pauses struct {
	Count   int64   `json:"n"`
	Seconds float64 `json:"s"` // all together
}

func (p Pauses) and(o Pauses) Pauses { return Pauses{p.Count + o.Count, p.Seconds + o.Seconds} }

func (a Activity) none() bool { return a.To == 0 && a.From == 0 && a.Pauses == nil }

// and is the activity of two times.
func (a Activity) and(b Activity) Activity {
	switch {
	case a.none():
		return b
	case b.none():
		return a
	case b.From < a.From:
		a, b = b, a
	}
	return Activity{a.From, max(a.To, b.To), Combined(a.Pauses, b.Pauses, Pauses.and), a.Before, slices.Concat(a.Gaps, b.Gaps)}
}

// since is the activity without the pause that ended with its first, unless such pauses are usual: in itself, or in the whole run where it has no others.
func (a Activity) since(usual float64) Activity {
	if a.Before == 0 {
		return a
	}
	n, its := int(math.Log2(a.Before*1e9)), a
	its.Pauses = maps.Clone(a.Pauses)
	if left := (Pauses{a.Pauses[n].Count - 1, a.Pauses[n].Seconds - a.Before}); left.Count > 0 {
		its.Pauses[n] = left
	} else {
		delete(its.Pauses, n)
	}
	least, most := 0.0, longer*usual
	if own := its.pause(usualShare); own > 0 {
		least, most = own/alike, own*alike
	}
	if least <= a.Before && a.Before < most {
		return a
	}
	return its
}

const (
	// mostOfTheTime is which part of the pauses a single one is that cannot have been an exception.
	mostOfTheTime = 0.9
	// Pauses are those of a load where they are a third of all, as between batches, whatever is slow within one. Those of what was sent need to be less, for
	// within a batch nothing is slow there, and there may have been no load for most of the time; of several processes not so much less, for these are not in step.
	usualShare, sentShare, sentTogetherShare = 1.0 / 3, 1.0 / 20, 1.0 / 10
	// A pause that is longer than those of the whole run by so much had another load in it, or none; those of one load are alike.
	longer, alike = 2, 1.5
)

// paused is how long all pauses together are; that are not exceptions.
func (a Activity) paused() (usual, all float64) {
	for _, p := range a.Pauses {
		all += p.Seconds
	}
	usual = all
	for n, p := range a.Pauses {
		if p.Count == 1 && a.Pauses[n-1].Count+a.Pauses[n+1].Count == 0 && p.Seconds < mostOfTheTime*all {
			usual -= p.Seconds
		}
	}
	return usual, all
}

// pause is the shortest that is a share of all of them: what comes a hundred at a time has a pause between the hundreds, and further ones, when nothing is asked
// for, are longer. Lengths that are alike may lie on both sides of a power of two.
func (a Activity) pause(share float64) float64 {
	usual, all := a.paused()
	for n := range 64 {
		both := a.Pauses[n].and(a.Pauses[n+1])
		if a.Pauses[n].Count > 0 && both.Seconds >= share*usual && (both.Count > 1 || both.Seconds >= mostOfTheTime*all) {
			return a.mean(n, n+1)
		}
	}
	return 0
}

// mean is that of the pauses of some lengths that an instant is in.
func (a Activity) mean(from, to int) float64 {
	sum, squares := 0.0, 0.0
	for n := from; n <= to; n++ {
		if p := a.Pauses[n]; p.Count > 0 {
			sum += p.Seconds
			squares += p.Seconds * p.Seconds / float64(p.Count)
		}
	}
	if sum == 0 {
		return 0
	}
	return squares / sum
}

// once tells whether a pause of about a length was the only one.
func (a Activity) once(pause float64) bool {
	n := int(math.Log2(pause * 1e9))
	return pause > 0 && a.Pauses[n-1].Count+a.Pauses[n].Count+a.Pauses[n+1].Count == 1
}

// like are the pauses of about a length, where they are no trifle of all.
func (a Activity) like(pause float64) float64 {
	if pause == 0 {
		return 0
	}
	n := int(math.Log2(pause * 1e9))
	usual, _ := a.paused()
	if a.Pauses[n-1].and(a.Pauses[n]).and(a.Pauses[n+1]).Seconds < sentShare*usual {
		return 0
	}
	return a.mean(n-1, n+1)
}

const (
	// A few senders that go by turns, close together, make rounds: so many short pauses in each, at most, and so many long ones, at least, between the rounds.
	mostTurns, leastRounds = 2, 3
)

// afterRound is the pause after a round of few, where the last one was whole: where there are as many short pauses to each long one, and to the one that
// would have followed.
func (a Activity) afterRound(short float64) float64 {
	turns, rounds, first, last := int64(0), int64(0), 0, 0
	for n, p := range a.Pauses {
		switch of := int(math.Log2(short * 1e9)); {
		case n > of+1:
			if rounds == 0 || n < first {
				first = n
			}
			rounds, last = rounds+p.Count, max(last, n)
		case n >= of-1:
			turns += p.Count
		}
	}
	if rounds < leastRounds || last > first+1 || turns%(rounds+1) != 0 || turns > mostTurns*(rounds+1) {
		return 0
	}
	return a.mean(first, last)
}

// next is how long it takes from one to the next, on average: where nothing came together it is the time between two, which is even, else a pause, of what was sent
// one that has a share of all.
func (a Activity) next(sent, even float64) float64 {
	pause := a.pause(usualShare)
	if sent > 0 {
		if like := a.like(a.pause(sent)); like > 0 {
			pause = like
		} else if a.once(pause) {
			pause = 0
		}
	}
	if pause > 0 {
		pause = cmp.Or(a.afterRound(pause), pause)
	}
	return max(pause, even)
}
