package nats

import (
	"context"
	"fmt"
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
	maxMessages int64
	maxBytes    int64
	ready       chan struct{} // holds one token while there is something new

	mu      sync.Mutex
	in      []delivery
	came    int64 // messages so far
	bytes   int64 // their payloads
	dropped int64 // messages that had no room
	errs    []error
	closed  bool

	taking sync.Mutex
	out    []delivery
	next   int

	left      atomic.Int64 // messages that were received, of those that came
	leftBytes atomic.Int64
}

func newInbox(maxMessages, maxBytes int64) *inbox {
	return &inbox{maxMessages: maxMessages, maxBytes: maxBytes, ready: make(chan struct{}, 1)}
}

// put adds a message, or drops it where it has no room. It never waits.
func (b *inbox) put(msg *nats.Msg, at int64) {
	b.mu.Lock()
	if b.came-b.left.Load() >= b.maxMessages || b.bytes-b.leftBytes.Load()+int64(len(msg.Data)) > b.maxBytes {
		b.dropped++
		b.mu.Unlock()
		return
	}
	b.in = append(b.in, delivery{msg, at})
	b.came++
	b.bytes += int64(len(msg.Data))
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

// receive waits for the first message, has fill turn as many as there are into messages of the batch, and returns how many.
// took is told of them before any drain can miss them.
func (b *inbox) receive(ctx context.Context, batch driver.Batch, fill func(*driver.Message, delivery), took func(driver.Batch)) (int, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	for {
		if n, err := b.take(batch, fill, took); n > 0 || err != nil {
			return n, err
		}
		select {
		case <-b.ready:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (b *inbox) take(batch driver.Batch, fill func(*driver.Message, delivery), took func(driver.Batch)) (int, error) {
	b.taking.Lock()
	defer b.taking.Unlock()
	if err := b.swap(); err != nil {
		return 0, err
	}
	n, size := min(len(batch), len(b.out)-b.next), 0
	for i := range batch[:n] {
		d := &b.out[b.next+i]
		size += len(d.msg.Data)
		fill(&batch[i], *d)
		*d = delivery{} // it must not live on here
	}
	b.next += n
	b.left.Add(int64(n))
	b.leftBytes.Add(int64(size))
	if took != nil && n > 0 {
		took(batch[:n])
	}
	return n, nil
}

// swap gives Receive what came, once it has received what came before, unless there is something else to tell.
func (b *inbox) swap() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		b.wake() // for those who come after
		return driver.ErrClosed
	case b.dropped > 0:
		n := b.dropped
		b.dropped = 0
		return fmt.Errorf("%w: %d", nats.ErrSlowConsumer, n)
	case len(b.errs) > 0:
		err := b.errs[0]
		b.errs = b.errs[1:]
		return err
	case b.next == len(b.out):
		b.in, b.out, b.next = b.out[:0], b.in, 0
	}
	return nil
}

// drain gives what nobody has received, and will not, because the inbox is closed.
func (b *inbox) drain() []delivery {
	b.taking.Lock()
	defer b.taking.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := append(b.out[b.next:], b.in...)
	b.in, b.out, b.next = nil, nil, 0
	return rest
}
