package outbox

import (
	"context"
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

// Workers send the messages of an outbox, each one request at a time.
type Workers[T any] struct {
	out     *Outbox[Item[T]]
	life    context.Context // ends when Close no longer waits
	stop    context.CancelCauseFunc
	running sync.WaitGroup
}

// Start starts n workers. send gets at most so many messages and bytes, as size counts them; it
// calls Done for each, and does not keep the slice.
func Start[T any](n, most, bytes int, size func(T) int, send func(ctx context.Context, all []Item[T])) *Workers[T] {
	w := &Workers[T]{out: New(func(i Item[T]) int { return size(i.Message) })}
	w.life, w.stop = context.WithCancelCause(context.Background())
	for range n {
		w.running.Go(func() {
			var all []Item[T]
			for {
				if all = w.out.Next(all, most, bytes); len(all) == 0 {
					return
				}
				send(w.life, all)
			}
		})
	}
	return w
}

// Put queues messages. After Close they are done with [driver.ErrClosed].
func (w *Workers[T]) Put(all ...Item[T]) {
	if len(all) == 0 || w.out.Put(len(all), func(i int) Item[T] { return all[i] }) {
		return
	}
	for _, item := range all {
		item.Done(driver.ErrClosed)
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

// Cause returns the reason for which Close gave up, if it did, else err.
func (w *Workers[T]) Cause(err error) error {
	if cause := context.Cause(w.life); err != nil && cause != nil {
		return cause
	}
	return err
}

// Close waits until all messages are done. When ctx ends the context of send ends with its error.
func (w *Workers[T]) Close(ctx context.Context) {
	w.out.Close()
	stop := context.AfterFunc(ctx, func() { w.stop(ctx.Err()) })
	w.running.Wait()
	stop()
	w.stop(driver.ErrClosed)
}
