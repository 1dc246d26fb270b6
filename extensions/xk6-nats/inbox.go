package nats

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// delivery is a message and when the driver saw it, by driver.Now.
type delivery struct {
	msg *nats.Msg
	at  int64
}

// inbox holds what came for a consumer until it is received. nats.go's callback fills one slice while Receive empties the
// other, so that they meet once per swap and not once per message.
type inbox struct {
	ready chan struct{} // holds one token while there is something new

	mu     sync.Mutex
	in     []delivery
	errs   []error
	closed bool

	out  []delivery // belongs to Receive
	next int

	waiting atomic.Int64 // messages in both slices
	bytes   atomic.Int64 // their payloads
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

// put adds a message. It never waits.
func (b *inbox) put(msg *nats.Msg, at int64) {
	b.waiting.Add(1)
	b.bytes.Add(int64(len(msg.Data)))
	b.mu.Lock()
	b.in = append(b.in, delivery{msg, at})
	first := len(b.in) == 1
	b.mu.Unlock()
	if first {
		b.wake()
	}
}

// fail makes one call of Receive return err. Errors that nobody fetches do not pile up.
func (b *inbox) fail(err error) {
	const most = 16
	b.mu.Lock()
	if len(b.errs) < most {
		b.errs = append(b.errs, err)
	}
	b.mu.Unlock()
	b.wake()
}

// close makes every Receive return [driver.ErrClosed] from now on.
func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wake()
}

func (b *inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// receive waits for the first message, turns as many as there are into messages of the batch, and returns how many.
func (b *inbox) receive(ctx context.Context, batch driver.Batch, fill func(*driver.Message, delivery)) (int, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	for {
		if n, err := b.take(batch, fill); n > 0 || err != nil {
			return n, err
		}
		select {
		case <-b.ready:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (b *inbox) take(batch driver.Batch, fill func(*driver.Message, delivery)) (int, error) {
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		b.wake() // for those who come after
		return 0, driver.ErrClosed
	case len(b.errs) > 0:
		err := b.errs[0]
		b.errs = b.errs[1:]
		b.mu.Unlock()
		return 0, err
	case b.next == len(b.out):
		b.in, b.out, b.next = b.out[:0], b.in, 0
	}
	b.mu.Unlock()

	n, size := min(len(batch), len(b.out)-b.next), 0
	for i := range batch[:n] {
		d := &b.out[b.next+i]
		size += len(d.msg.Data)
		fill(&batch[i], *d)
		*d = delivery{} // it must not live on here
	}
	b.next += n
	b.waiting.Add(-int64(n))
	b.bytes.Add(-int64(size))
	return n, nil
}
