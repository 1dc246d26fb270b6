// Package inbox is what lies between a client library that brings messages and a driver's Receive: an [Inbox] is a queue with its errors and its end,
// [Room] is how much of a consumer's prefetch is free, and [Inbox.Poll] fills the one within the other from a client that has to be asked.
// A client that has such a queue itself, as those that are polled, needs no second one.
package inbox

import (
	"context"
	"slices"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// Inbox holds what has come for a consumer until it is received, each in the form T that the driver keeps it in. One side fills a slice while
// the other empties a second one, so that they meet once per batch and not once per message.
//
// Receive, Take and Wait are called by one goroutine at a time, the other methods by any.
type Inbox[T any] struct {
	hand  func(b driver.Batch, came []T)
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

// New returns an empty inbox. hand turns what came into messages: it fills b, which is as long as came. While it runs Waiting, Len and Clear wait, so that
// what hand notes of a message and what still waits are always the whole; it must call none of them itself.
func New[T any](hand func(b driver.Batch, came []T)) *Inbox[T] {
	in := &Inbox[T]{hand: hand, ready: make(chan struct{}, 1)}
	in.life, in.end = context.WithCancel(context.Background()) //gosec:disable G118 -- Close calls it
	return in
}

// Put adds what has come. It never waits.
func (in *Inbox[T]) Put(all ...T) {
	in.mu.Lock()
	in.in = append(in.in, all...)
	first := len(in.in) == len(all)
	in.mu.Unlock()
	if first {
		in.Wake()
	}
}

// Fail makes one call of Receive return err, before what waits. An error that says the same as the one before, which nobody has heard yet, takes its
// place, and of very many that nobody hears the first ones are kept.
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

// Wake has a Wait return although nothing has come.
func (in *Inbox[T]) Wake() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

// Close makes every Receive return [driver.ErrClosed] from now on. It tells whether it was the first to do so. What waits stays.
func (in *Inbox[T]) Close() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	first := in.life.Err() == nil
	in.end()
	return first
}

// Receive waits for something to come and fills b with as much as there is, in the order of coming. Its errors are those of Fail, each once, ctx's,
// and [driver.ErrClosed].
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

// Take is Receive, but it does not wait: there may be nothing.
func (in *Inbox[T]) Take(b driver.Batch) (int, error) {
	in.taking.Lock()
	defer in.taking.Unlock()
	rest := in.next < len(in.out) // of what came before
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

// begin tells what there is to tell before anything is taken, and else has Take go on with what came, once it has taken what came before.
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

// swap exchanges the slices, of which out is empty. Both locks are held.
func (in *Inbox[T]) swap() { in.in, in.out, in.next = in.out[:0], in.in, 0 }

// move hands over as much of out as b has places for.
func (in *Inbox[T]) move(b driver.Batch) int {
	came := in.out[in.next:min(in.next+len(b), len(in.out))]
	if len(came) > 0 {
		in.hand(b[:len(came)], came)
		clear(came) // they must not live on here
		in.next += len(came)
	}
	return len(came)
}

// Wait returns when there may be something to take, or there is an end: the inbox's, which Take tells, or ctx's.
func (in *Inbox[T]) Wait(ctx context.Context) error {
	select {
	case <-in.ready:
	case <-in.life.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Waiting is a copy of what has come and was not received.
func (in *Inbox[T]) Waiting() []T {
	in.taking.Lock()
	defer in.taking.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Concat(in.out[in.next:], in.in)
}

// Len is how much waits.
func (in *Inbox[T]) Len() int {
	in.taking.Lock()
	defer in.taking.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.out) - in.next + len(in.in)
}

// Clear drops what waits: it cannot be settled any more and the broker delivers it again.
func (in *Inbox[T]) Clear() {
	in.taking.Lock()
	defer in.taking.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	clear(in.out[in.next:])
	clear(in.in)
	in.next, in.in = len(in.out), in.in[:0]
}

// Poll is for clients that have to be asked: while there is room it calls fetch for so much of it as is free, at most for a given number, and puts what comes.
// An error is told by Receive, and fetch is called again after a [redial.Pause]. Poll returns after Close, which ends fetch's
// context; what fetch brings then waits like everything else, for the driver to give back. Several may poll into one inbox.
//
// What is settled, or need not be once it is received, the driver gives back to room.
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
