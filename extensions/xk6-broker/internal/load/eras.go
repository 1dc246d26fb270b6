package load

import (
	"slices"
	"sync"
	"sync/atomic"
)

// era counts the flights of a topic that were handed over in it and have not come to their end.
type era struct{ flights atomic.Int64 }

// eras divide a topic's flights by when their messages were numbered: who wants to know when all that was numbered up to a moment has its fate ends
// the era there, and waits until nothing of it, nor of those before, is under way. To all others it is a counter.
type eras struct {
	now atomic.Pointer[era]

	mu   sync.Mutex
	past []*era // those of which something was under way when the last one ended
}

func (e *eras) begin() { e.now.Store(&era{}) }

// enter counts a flight whose messages are about to be numbered.
func (e *eras) enter() *era {
	for {
		now := e.now.Load()
		now.flights.Add(1)
		if e.now.Load() == now {
			return now
		}
		now.flights.Add(-1) // it has ended meanwhile, and somebody may have found it empty
	}
}

func (e *era) leave() { e.flights.Add(-1) }

// end ends the present era. What it returns tells whether a flight whose messages were numbered before is still under way.
func (e *eras) end() (underway func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.past = slices.DeleteFunc(append(e.past, e.now.Swap(&era{})), (*era).empty)
	all := slices.Clone(e.past)
	return func() bool { return slices.ContainsFunc(all, func(past *era) bool { return !past.empty() }) }
}

func (e *era) empty() bool { return e.flights.Load() == 0 }
