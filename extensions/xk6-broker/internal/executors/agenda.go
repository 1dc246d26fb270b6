package executors

import (
	"math"
	"sync"
	"time"
)

// agenda counts the arrivals that are due. It has a share of its own, and only ever goes forward in it.
type agenda struct {
	mu    sync.Mutex
	share *share
	start int64
	n     uint64
	next  int64
	ok    bool
	end   int64 // nothing is due after it
}

func (a *agenda) begin(start int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.start, a.end = start, math.MaxInt64
	a.look()
}

func (a *agenda) look() {
	var at time.Duration
	at, a.ok = a.share.at(a.n)
	a.next = a.start + int64(at)
}

// due is how many arrivals are due at the given time, or at the latest that was ever asked for.
func (a *agenda) due(now int64) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	for now = min(now, a.end); a.ok && a.next <= now; {
		a.n++
		a.look()
	}
	return a.n
}

// stop makes now the time after which nothing is due.
func (a *agenda) stop(now int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end = now
}
