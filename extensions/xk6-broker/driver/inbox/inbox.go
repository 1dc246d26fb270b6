// Package inbox queues messages between a client library and a driver's Receive, within a consumer's
// prefetch. A client library with a queue of its own needs none.
package inbox

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// Inbox holds messages, in the driver's form T, until the consumer receives them. Receive, Take and
// Wait are called by one goroutine at a time, the other methods by any.
type Inbox[T any] struct {
	hand  func(b driver.Batch, arrived []T)
	ready chan struct{} // holds one token while there may be something new
	life  context.Context
	end   context.CancelFunc

	mu    sync.Mutex
	queue []T
	next  int   // the first of queue that has not been received
	err   error // for the next Receive
}

// New returns an empty inbox. hand converts arrived to messages in b, which is as long as arrived.
// It must not call the inbox.
func New[T any](hand func(b driver.Batch, arrived []T)) *Inbox[T] {
	in := &Inbox[T]{hand: hand, ready: make(chan struct{}, 1)}
	in.life, in.end = context.WithCancel(context.Background()) //gosec:disable G118 -- Close calls it
	return in
}

// Put adds messages. It never waits for Receive.
func (in *Inbox[T]) Put(all ...T) {
	in.mu.Lock()
	if in.next*2 >= len(in.queue) {
		in.queue = slices.Delete(in.queue, 0, in.next)
		in.next = 0
	}
	in.queue = append(in.queue, all...)
	in.mu.Unlock()
	in.Wake()
}

// Fail makes one call of Receive return err, before any queued message. While an error waits for
// Receive, further ones are dropped.
func (in *Inbox[T]) Fail(err error) {
	in.mu.Lock()
	in.err = cmp.Or(in.err, err)
	in.mu.Unlock()
	in.Wake()
}

// Wake makes Wait return.
func (in *Inbox[T]) Wake() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

// Close makes every Receive return [driver.ErrClosed] from now on, and reports whether it is the
// first Close. Queued messages stay.
func (in *Inbox[T]) Close() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	first := in.life.Err() == nil
	in.end()
	return first
}

// Receive waits for messages and fills b in their order. It returns the error of Fail once,
// ctx's error, or [driver.ErrClosed].
func (in *Inbox[T]) Receive(ctx context.Context, b driver.Batch) (int, error) {
	for {
		if n, err := in.Take(b); n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		if err := in.Wait(ctx); err != nil {
			return 0, err
		}
	}
}

// Take is Receive without waiting. It may return 0 messages.
func (in *Inbox[T]) Take(b driver.Batch) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.life.Err() != nil {
		return 0, driver.ErrClosed
	}
	if err := in.err; err != nil {
		in.err = nil
		return 0, err
	}
	arrived := in.queue[in.next:]
	arrived = arrived[:min(len(b), len(arrived))]
	if len(arrived) > 0 {
		in.hand(b[:len(arrived)], arrived)
		clear(arrived) // for the garbage collector
		in.next += len(arrived)
	}
	return len(arrived), nil
}

// Wait returns when there may be messages or an error, or with ctx's error.
func (in *Inbox[T]) Wait(ctx context.Context) error {
	select {
	case <-in.ready:
	case <-in.life.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Waiting returns a copy of the queued messages.
func (in *Inbox[T]) Waiting() []T {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.queue[in.next:])
}

// Len returns the number of queued messages.
func (in *Inbox[T]) Len() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.queue) - in.next
}

// Clear drops the queued messages, which can no longer be settled: the broker delivers them again.
func (in *Inbox[T]) Clear() {
	in.mu.Lock()
	defer in.mu.Unlock()
	clear(in.queue)
	in.queue, in.next = in.queue[:0], 0
}

// Poll calls fetch, for at most so many messages, while there is room, and queues the result.
// Receive returns its error, and fetch is called again after a [redial.Pause]. Close ends Poll and
// fetch's context. The driver gives room back for messages that are settled.
func (in *Inbox[T]) Poll(room *Room, most int, fetch func(ctx context.Context, most int) ([]T, error)) {
	for failures := 0; ; {
		n, err := room.Reserve(in.life, 1, most)
		if err != nil {
			return
		}
		some, err := fetch(in.life, n)
		room.Give(n - len(some))
		if len(some) > 0 {
			in.Put(some...)
		}
		if in.life.Err() != nil {
			return
		}
		if err == nil {
			failures = 0
			continue
		}
		failures++
		in.Fail(err)
		if !redial.Sleep(in.life, failures) {
			return
		}
	}
}
