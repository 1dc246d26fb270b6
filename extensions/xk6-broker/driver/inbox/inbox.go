// Package inbox queues messages between a client library and a driver's Receive, within a consumer's
// prefetch. A client library with a queue of its own needs none.
package inbox

import (
	"context"
	"slices"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// Inbox holds messages, in the driver's form T, until the consumer receives them. One side fills a
// slice while the other empties a second one, so they synchronise once per batch and not once per
// message.
//
// Receive, Take and Wait are called by one goroutine at a time, the other methods by any.
type Inbox[T any] struct {
	hand  func(b driver.Batch, arrived []T)
	ready chan struct{} // holds one token while there may be something new
	life  context.Context
	end   context.CancelFunc

	mu   sync.Mutex
	in   []T
	errs []error

	taking sync.Mutex // before mu
	out    []T
	next   int // the first of out that has not been received
}

// New returns an empty inbox. hand converts arrived to messages in b, which is as long as arrived.
// Waiting, Len and Clear block while it runs, and it must not call them.
func New[T any](hand func(b driver.Batch, arrived []T)) *Inbox[T] {
	in := &Inbox[T]{hand: hand, ready: make(chan struct{}, 1)}
	in.life, in.end = context.WithCancel(context.Background()) //gosec:disable G118 -- Close calls it
	return in
}

// Put adds messages. It never blocks.
func (in *Inbox[T]) Put(all ...T) {
	in.mu.Lock()
	in.in = append(in.in, all...)
	first := len(in.in) == len(all)
	in.mu.Unlock()
	if first {
		in.Wake()
	}
}

// Fail makes one call of Receive return err, before any queued message. An error with the text of
// the last queued one replaces it. At most 16 are queued.
func (in *Inbox[T]) Fail(err error) {
	const most = 16
	in.mu.Lock()
	last := len(in.errs) - 1
	switch {
	case last >= 0 && in.errs[last].Error() == err.Error():
		in.errs[last] = err
	case len(in.errs) < most:
		in.errs = append(in.errs, err)
	}
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

// Receive waits for messages and fills b in their order. It returns each error of Fail once, ctx's
// error, or [driver.ErrClosed].
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
	in.taking.Lock()
	defer in.taking.Unlock()
	rest := in.next < len(in.out)
	if err := in.begin(); err != nil {
		return 0, err
	}
	n := in.move(b)
	if rest && n < len(b) {
		in.mu.Lock()
		in.swap()
		in.mu.Unlock()
		n += in.move(b[n:])
	}
	return n, nil
}

// begin returns an error that is due, or swaps the slices if out is empty.
func (in *Inbox[T]) begin() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.life.Err() != nil:
		return driver.ErrClosed
	case len(in.errs) > 0:
		err := in.errs[0]
		in.errs = in.errs[1:]
		return err
	case in.next == len(in.out):
		in.swap()
	}
	return nil
}

// swap exchanges the slices; out must be empty. Both locks are held.
func (in *Inbox[T]) swap() { in.in, in.out, in.next = in.out[:0], in.in, 0 }

// move hands over messages of out, as many as b has places for.
func (in *Inbox[T]) move(b driver.Batch) int {
	arrived := in.out[in.next:min(in.next+len(b), len(in.out))]
	if len(arrived) > 0 {
		in.hand(b[:len(arrived)], arrived)
		clear(arrived) // for the garbage collector
		in.next += len(arrived)
	}
	return len(arrived)
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
	in.taking.Lock()
	defer in.taking.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Concat(in.out[in.next:], in.in)
}

// Len returns the number of queued messages.
func (in *Inbox[T]) Len() int {
	in.taking.Lock()
	defer in.taking.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.out) - in.next + len(in.in)
}

// Clear drops the queued messages, which can no longer be settled: the broker delivers them again.
func (in *Inbox[T]) Clear() {
	in.taking.Lock()
	defer in.taking.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	clear(in.out[in.next:])
	clear(in.in)
	in.next, in.in = len(in.out), in.in[:0]
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
