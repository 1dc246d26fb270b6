package load

import (
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// timed are the counters of which it is known when they first and last counted in an interval: a rate is of that time, and not of whole seconds.
var timed = [...]metric.Counter{metric.Sent, metric.Confirmed, metric.Received}

// activity is when something was counted since it was taken: first, last, and what pauses there were between.
type activity struct {
	first, last atomic.Int64
	before      atomic.Int64 // when it was counted last before it was taken
	pauses      atomic.Int64 // ns, of all together
	longest     atomic.Int64 // ns
	squares     atomic.Int64 // μs², of their lengths
}

// A shorter time than leastPause between two is no pause: nothing that goes so fast depends on one of them. One of mostPause ends nothing that would come
// again.
const (
	leastPause = int64(100 * time.Microsecond)
	mostPause  = int64(10 * time.Minute)
)

func (a *activity) note(at int64) {
	if a.first.Load() == 0 {
		a.first.CompareAndSwap(0, at)
	}
	last := a.last.Load()
	if at <= last {
		return
	}
	before := last
	if before == 0 {
		before = a.before.Load()
	}
	if pause := at - before; before == 0 || pause < leastPause {
		a.last.Store(at)
	} else if a.last.CompareAndSwap(last, at) { // else another one was counted in it
		pause = min(pause, mostPause)
		a.pauses.Add(pause)
		a.longest.Store(max(pause, a.longest.Load()))
		a.squares.Add((pause / 1000) * (pause / 1000))
	}
}

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
	return active{first, last, a.pauses.Swap(0), a.longest.Swap(0), float64(a.squares.Swap(0)) / 1e12}
}

// active is from when to when something was counted, ns since the Unix epoch, 0 where it was not, and what pauses ended in that time.
type active struct {
	from, to        int64
	pauses, longest int64   // ns
	squares         float64 // s²
}

func (a active) and(b active) active {
	switch {
	case a.from == 0:
		return b
	case b.from == 0:
		return a
	}
	return active{min(a.from, b.from), max(a.to, b.to), a.pauses + b.pauses, max(a.longest, b.longest), a.squares + b.squares}
}

// described is the activity as a result has it.
func described(all [len(timed)]active, started int64) map[string]result.Activity {
	named := map[string]result.Activity{}
	for i, a := range all {
		if a.from != 0 {
			named[timed[i].String()] = result.Activity{
				From: seconds(a.from - started), To: seconds(a.to - started),
				Pauses: seconds(a.pauses), Longest: seconds(a.longest), Squares: a.squares,
			}
		}
	}
	return named
}
