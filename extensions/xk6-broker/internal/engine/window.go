package engine

import (
	"context"
	"sync/atomic"
)

// window bounds how many messages are handed over and not yet done.
type window struct {
	size    int64
	free    atomic.Int64
	waiting atomic.Int64
	wake    chan struct{}
}

func newWindow(size int) *window {
	w := &window{size: int64(size), wake: make(chan struct{}, 1)}
	w.free.Store(int64(size))
	return w
}

// inFlight returns how many are taken.
func (w *window) inFlight() int64 { return w.size - w.free.Load() }

// tryAcquire takes up to most, or nothing if fewer than least are free.
func (w *window) tryAcquire(least, most int64) int64 {
	for {
		free := w.free.Load()
		if free < least || free <= 0 {
			return 0
		}
		n := min(free, most)
		if w.free.CompareAndSwap(free, free-n) {
			return n
		}
	}
}

// acquire takes up to most, and waits until least are free. It returns how many, or ctx's error.
func (w *window) acquire(ctx context.Context, least, most int64) (int64, error) {
	least = min(least, w.size)
	if n := w.tryAcquire(least, most); n > 0 {
		return n, nil
	}
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	for {
		if n := w.tryAcquire(least, most); n > 0 {
			w.signal() // there may be enough for another
			return n, nil
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			w.signal() // a token taken and not used would leave another asleep
			return 0, ctx.Err()
		}
	}
}

func (w *window) release(n int64) {
	w.free.Add(n)
	w.signal()
}

func (w *window) signal() {
	if w.waiting.Load() == 0 {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
