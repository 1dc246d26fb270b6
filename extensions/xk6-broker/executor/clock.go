package executor

import (
	"math"
	"sync"
	"time"
)

// clock counts the arrivals that are due. It has a share of its own, and only ever goes forward in it.
type clock struct {
	mu    sync.Mutex
	share *share
	start int64
	n     uint64
	next  int64
	ok    bool
	end   int64 // nothing is due after it
}

func (c *clock) begin(start int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start, c.end = start, math.MaxInt64
	c.look()
}

func (c *clock) look() {
	var at time.Duration
	at, c.ok = c.share.at(c.n)
	c.next = c.start + int64(at)
}

// due is how many arrivals are due at the given time, or at the latest that was ever asked for.
func (c *clock) due(now int64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for now = min(now, c.end); c.ok && c.next <= now; {
		c.n++
		c.look()
	}
	return c.n
}

// stop makes now the time after which nothing is due.
func (c *clock) stop(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = now
}
