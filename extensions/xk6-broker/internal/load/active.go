package load

import (
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// timed are the counters of which it is known when they counted first and last: rates are of that time, and not of whole seconds.
var timed = [...]metric.Counter{metric.Sent, metric.Confirmed, metric.Received}

// activities are those of a topic, whichever of its series counted.
type activities [len(timed)]activity

// activity is when something was counted first and last, ns since the Unix epoch, 0 where it was not, and what its pauses were.
type activity struct {
	first, last atomic.Int64
	squares     atomic.Int64 // of the pauses, added up, ms²

	cut    atomic.Int64 // when the present phase began
	during atomic.Int64 // squares of what the pauses have of it
}

// leastPause is no pause: next to none of the time for which anything goes on depends on one that is shorter.
const leastPause = int64(time.Millisecond)

func (a *activity) note(at int64) {
	if a.first.Load() == 0 {
		a.first.CompareAndSwap(0, at)
	}
	last := a.last.Load()
	switch pause := at - last; {
	case pause <= 0:
	case last == 0 || pause < leastPause:
		a.last.Store(at)
	case a.last.CompareAndSwap(last, at): // else another one was counted in it
		a.squares.Add(square(pause))
		a.during.Add(square(at - max(last, a.cut.Load())))
	}
}

// square is that of a pause, ms².
func square(pause int64) int64 {
	ms := max(0, pause) / leastPause
	return ms * ms
}

// phaseEnds gives the squares of what the pauses had of a phase that ends, and so begins another.
func (a *activity) phaseEnds(now int64) int64 {
	last, cut := a.last.Load(), a.cut.Swap(now)
	if last == 0 {
		return 0
	}
	return a.during.Swap(0) + square(now-max(last, cut))
}

// spans are from when to when each of them counted.
func (all *activities) spans(started int64) map[string]result.Span {
	spans := map[string]result.Span{}
	if all == nil {
		return spans
	}
	for i := range all {
		a := &all[i]
		first, last := a.first.Load(), a.last.Load()
		if first == 0 {
			continue
		}
		s := result.Span{First: seconds(first - started), Last: seconds(max(first, last) - started)}
		if s.Last > s.First {
			s.Pause = float64(a.squares.Load()) * 1e-6 / (s.Last - s.First)
		}
		spans[timed[i].String()] = s
	}
	return spans
}
