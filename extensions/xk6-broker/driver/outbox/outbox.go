// Package outbox is the queue of a producer that sends one request after another: messages sent
// meanwhile go with the next one.
package outbox

import (
	"context"
	"slices"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Item is a message, in the driver's form T, that is not done.
type Item[T any] struct {
	Message T
	Index   int // in its batch
	Report  driver.Done
}

// Done reports the fate of the message.
func (i Item[T]) Done(err error) { i.Report(i.Index, err) }

// Workers send queued messages in their order, each worker one request at a time.
type Workers[T any] struct {
	most, bytes int // of one request
	size        func(T) int

	life    context.Context // ends when Close no longer waits
	stop    context.CancelCauseFunc
	running sync.WaitGroup

	mu     sync.Mutex
	some   sync.Cond
	queue  []Item[T]
	closed bool
}

// Start starts n workers. send gets at most so many messages and bytes, as size counts them, or one
// larger message. It calls Done for each and does not keep the slice; its ctx ends if Close gives up.
func Start[T any](n, most, bytes int, size func(T) int, send func(ctx context.Context, all []Item[T])) *Workers[T] {
	w := &Workers[T]{most: most, bytes: bytes, size: size}
	w.some.L = &w.mu
	w.life, w.stop = context.WithCancelCause(context.Background())
	for range n {
		w.running.Go(func() {
			for all := w.next(nil); len(all) > 0; all = w.next(all) {
				send(w.life, all)
			}
		})
	}
	return w
}

// Put queues messages. After Close they are done with [driver.ErrClosed].
func (w *Workers[T]) Put(all ...Item[T]) {
	w.mu.Lock()
	closed := w.closed
	if !closed {
		w.queue = append(w.queue, all...)
		w.some.Signal()
	}
	w.mu.Unlock()
	if closed {
		for _, item := range all {
			item.Done(driver.ErrClosed)
		}
	}
}

// Send converts a batch and queues it. A message that cannot be converted is done with the error.
func (w *Workers[T]) Send(b driver.Batch, done driver.Done, convert func(*driver.Message) (T, error)) {
	all := make([]Item[T], 0, len(b))
	for i := range b {
		m, err := convert(&b[i])
		if err != nil {
			done(i, err)
			continue
		}
		all = append(all, Item[T]{m, i, done})
	}
	w.Put(all...)
}

// next waits for messages and returns the oldest ones that go together, in the slice that it
// returned last; none after Close and the last message.
func (w *Workers[T]) next(spare []Item[T]) []Item[T] {
	clear(spare)
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 && !w.closed {
		w.some.Wait()
	}
	n, bytes := 0, 0
	for n < min(len(w.queue), w.most) {
		if bytes += w.size(w.queue[n].Message); n > 0 && bytes > w.bytes {
			break
		}
		n++
	}
	all := append(spare[:0], w.queue[:n]...)
	w.queue = slices.Delete(w.queue, 0, n)
	if len(w.queue) > 0 {
		w.some.Signal() // one Put may fill several requests
	}
	return all
}

// Close waits until all messages are done. When ctx ends the context of send ends with its error.
func (w *Workers[T]) Close(ctx context.Context) {
	w.mu.Lock()
	w.closed = true
	w.some.Broadcast()
	w.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { w.stop(ctx.Err()) })
	w.running.Wait()
	stop()
	w.stop(driver.ErrClosed)
}
