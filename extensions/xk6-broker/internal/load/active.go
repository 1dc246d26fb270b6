package load

import (
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// timed are the counters of which it is known when they first and last counted in an interval: a rate is of that time, and not of whole seconds.
var timed = [...]metric.Counter{metric.Sent, metric.Confirmed, metric.Received}

// activity is when something was counted first and last since it was taken.
type activity struct{ first, last atomic.Int64 }

func (a *activity) note(at int64) {
	if a.first.Load() == 0 {
		a.first.CompareAndSwap(0, at)
	}
	if a.last.Load() < at {
		a.last.Store(at)
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
	return active{first, last}
}

// active is from when to when something was counted, ns since the Unix epoch; 0 where it was not.
type active struct{ from, to int64 }

func (a active) and(b active) active {
	switch {
	case a.from == 0:
		return b
	case b.from == 0:
		return a
	}
	return active{min(a.from, b.from), max(a.to, b.to)}
}

// described is the activity as a result has it.
func described(all [len(timed)]active, started int64) map[string]result.Stretch {
	named := map[string]result.Stretch{}
	for i, a := range all {
		if a.from != 0 {
			named[timed[i].String()] = result.Stretch{From: seconds(a.from - started), To: seconds(a.to - started)}
		}
	}
	return named
}
