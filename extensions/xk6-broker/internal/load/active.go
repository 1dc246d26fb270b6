package load

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// timed are the counters of which it is known when they first and last counted in an interval: a rate is of that time, and not of whole seconds.
var timed = [...]metric.Counter{metric.Sent, metric.Confirmed, metric.Received}

// activities are those of a topic, whichever of its series counted.
type activities [len(timed)]activity

// activity is when something was counted since it was taken: first, last, and what pauses there were between.
type activity struct {
	first, last atomic.Int64
	before      atomic.Int64 // when it was counted last before it was taken
	pauses      [lengths]struct{ count, ns atomic.Int64 }
	prior       atomic.Int64 // the pause that ended with the first, ns

	mu   sync.Mutex
	gaps []gap // the longest of the pauses
}

// gap is a pause that is long enough for processes to go on by turns, ns since the Unix epoch.
type gap struct{ from, to int64 }

// leastGap is how long one is at least, and mostGaps how many an interval has.
const (
	leastGap = int64(result.LeastGap * float64(time.Second))
	mostGaps = 16
)

// A shorter time than the least between two is no pause: nothing that goes so fast depends on one of them. One of mostPause ends nothing that would come
// again. Between them lengths are told apart by powers of two.
const (
	leastPower = 16 // 66 μs
	mostPower  = 39
	lengths    = mostPower - leastPower + 1
	mostPause  = int64(10 * time.Minute)
)

func (a *activity) note(at int64) {
	first := a.first.Load() == 0 && a.first.CompareAndSwap(0, at)
	last := a.last.Load()
	if at <= last {
		return
	}
	before := last
	if before == 0 {
		before = a.before.Load()
	}
	if pause := at - before; before == 0 || pause < 1<<leastPower {
		a.last.Store(at)
	} else if a.last.CompareAndSwap(last, at) { // else another one was counted in it
		pause = min(pause, mostPause)
		of := &a.pauses[power(pause)-leastPower]
		of.count.Add(1)
		of.ns.Add(pause)
		if first {
			a.prior.Store(pause)
		}
		if at-before >= leastGap {
			a.mu.Lock()
			a.gaps = longest(append(a.gaps, gap{before, at}))
			a.mu.Unlock()
		}
	}
}

// longest are the gaps that are kept, in the order of time.
func longest(all []gap) []gap {
	if len(all) > mostGaps {
		shortest := 0
		for i, g := range all {
			if g.to-g.from < all[shortest].to-all[shortest].from {
				shortest = i
			}
		}
		all = slices.Delete(all, shortest, shortest+1)
	}
	return all
}

// power is that of two which is not more than some ns.
func power(ns int64) int { return bits.Len64(uint64(ns)) - 1 } //gosec:disable G115 -- no pause is negative

// take gives the activity, and begins anew.
func (a *activity) take() active {
	first, last := a.first.Swap(0), a.last.Swap(0)
	switch {
	case first == 0: // it was noted between the two
		first = last
	case last < first:
		last = first
	}
	if last != 0 {
		a.before.Store(last)
	}
	taken := active{from: first, to: last, prior: a.prior.Swap(0)}
	for i := range a.pauses {
		taken.pauses[i] = pauses{a.pauses[i].count.Swap(0), a.pauses[i].ns.Swap(0)}
	}
	a.mu.Lock()
	taken.gaps, a.gaps = a.gaps, nil
	a.mu.Unlock()
	return taken
}

// active is from when to when something was counted, ns since the Unix epoch, 0 where it was not, and what pauses ended in that time.
type active struct {
	from, to int64
	pauses   [lengths]pauses
	prior    int64 // the pause that ended with the first, ns
	gaps     []gap
}

type pauses struct{ count, ns int64 }

// and is the activity of a time and a later one.
func (a active) and(b active) active {
	switch {
	case a.from == 0:
		return b
	case b.from == 0:
		return a
	}
	both := active{from: min(a.from, b.from), to: max(a.to, b.to), prior: a.prior}
	for i := range both.pauses {
		both.pauses[i] = pauses{a.pauses[i].count + b.pauses[i].count, a.pauses[i].ns + b.pauses[i].ns}
	}
	both.gaps = slices.Clone(a.gaps)
	for _, g := range b.gaps {
		both.gaps = longest(append(both.gaps, g))
	}
	return both
}

// described is the activity as a result has it, without pauses that were a trifle of their interval.
func described(all [len(timed)]active, started int64) map[string]result.Activity {
	const trifle = 50
	named := map[string]result.Activity{}
	for i, a := range all {
		if a.from == 0 {
			continue
		}
		of := result.Activity{From: seconds(a.from - started), To: seconds(a.to - started), Pauses: map[int]result.Pauses{}, Before: seconds(a.prior)}
		sum := int64(0)
		for _, p := range a.pauses {
			sum += p.ns
		}
		for length, p := range a.pauses {
			if p.count > 0 && p.ns >= sum/trifle {
				of.Pauses[leastPower+length] = result.Pauses{Count: p.count, Seconds: seconds(p.ns)}
			}
		}
		for _, g := range a.gaps {
			of.Gaps = append(of.Gaps, result.Gap{seconds(g.from - started), seconds(g.to - started)})
		}
		named[timed[i].String()] = of
	}
	return named
}
