package engine

import (
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/schedule"
)

// loops are the produce loops of a topic that have a schedule and go on.
type loops struct {
	mu  sync.Mutex
	all map[*agenda]struct{}
}

// begin adds a loop until the result is called.
func (l *loops) begin(a *agenda) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[*agenda]struct{}{}
	}
	l.all[a] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, a)
	}
}

// waiting returns how many arrivals are due and not yet sent.
func (l *loops) waiting(now int64) (n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a := range l.all {
		n += a.waiting(now)
	}
	return n
}

// agenda counts how many arrivals of a produce loop are due. It has a schedule of its own, because a schedule serves one goroutine.
type agenda struct {
	loop     *produceLoop
	schedule schedule.Schedule
	due      uint64
}

func newAgenda(l *produceLoop) *agenda {
	return &agenda{loop: l, schedule: l.own.Of(l.Share.Of(l.Schedule()))}
}

func (a *agenda) waiting(now int64) uint64 {
	l, taken := a.loop, a.loop.taken.Load()
	for ; l.Count == 0 || a.due < l.count; a.due++ {
		at, ok := a.schedule.At(a.due)
		if !ok || l.Duration > 0 && at >= l.Duration || l.Start+int64(at) > now {
			break
		}
	}
	return a.due - min(a.due, taken)
}
