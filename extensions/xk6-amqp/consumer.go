package amqp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// errCanceled is what the broker means by basic.cancel.
var errCanceled = &amqp.Error{Code: amqp.NotFound, Reason: "the broker canceled the consumer: the queue is deleted, or its node is gone", Server: true}

// consumer consumes on a channel of its own, and opens another one when that is lost.
type consumer struct {
	conn     *conn
	topic    string
	group    string
	prefetch int
	start    driver.Start
	options  driver.Values

	mu     sync.Mutex
	intake *intake
	inbox  driver.Batch  // not taken by Receive yet
	lost   error         // why there is no channel, until Receive has told
	wake   chan struct{} // there is something in inbox, or lost

	taken  driver.Batch // what Receive has taken from inbox; only Receive uses it
	handed int          // how many of taken are handed out
	next   atomic.Int64 // the offset in a stream to go on with; 0 while none was handed out

	settling sync.Mutex // guards the ledger of every intake
	replies  replies

	life context.Context // ends with Close, and with the connection
	stop context.CancelFunc
	done chan struct{} // closed when no more will arrive
}

// intake is a channel that consumes from a queue.
type intake struct {
	*channel
	queue      string
	deliveries <-chan amqp.Delivery
	arrived    atomic.Uint64 // the tag of the last delivery; the broker counts from 1
	tokens     []token       // made, and not given to a message yet
	ledger     ledger
}

// token is the handle of a message for Settle and Reply.
type token struct {
	intake *intake
	tag    uint64
	offset int64    // in a stream
	asked  *request // nil where no reply is asked for
}

// request is where a reply goes to.
type request struct{ replyTo, correlationID string }

func (c *conn) NewConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	if cfg.Prefetch > math.MaxUint16 {
		return nil, rejectedError(fmt.Sprintf("a prefetch of %d is more than AMQP can say: %d", cfg.Prefetch, math.MaxUint16))
	}
	if err := c.refuse(cfg); err != nil {
		return nil, err
	}
	r := &consumer{
		conn:     c,
		topic:    cfg.Topic,
		group:    cfg.Group,
		prefetch: cfg.Prefetch,
		start:    cfg.Start,
		options:  cfg.Options,
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
	}
	r.life, r.stop = context.WithCancel(c.life)
	if err := c.join(r); err != nil {
		r.stop()
		return nil, err
	}
	in, err := r.open(ctx)
	if err != nil {
		r.stop()
		c.leave(r)
		return nil, err
	}
	r.mu.Lock()
	r.intake = in
	r.mu.Unlock()
	c.running.Go(r.run)
	return r, nil
}

// refuse finds what a kind of topic cannot do.
func (c *conn) refuse(cfg driver.ConsumerConfig) error {
	switch {
	case c.mode == queue && cfg.Start != driver.StartEarliest:
		return fmt.Errorf("a queue is always read from its oldest message: start new: %w", errors.ErrUnsupported)
	case c.mode == pubsub && cfg.Start != driver.StartNew:
		return fmt.Errorf("an exchange keeps no messages: start earliest: %w", errors.ErrUnsupported)
	case c.mode == stream && cfg.Group != "":
		return fmt.Errorf("every consumer reads a stream for itself: group: %w", errors.ErrUnsupported)
	}
	return nil
}

// open opens a channel and consumes.
func (r *consumer) open(ctx context.Context) (*intake, error) {
	in := &intake{}
	ch, err := r.conn.consuming.channel(ctx, func(ch *amqp.Channel) error {
		queue, err := r.bind(ch)
		if err != nil {
			return err
		}
		if err := ch.Qos(r.prefetch, 0, false); err != nil {
			return err
		}
		in.queue = queue
		in.deliveries, err = ch.Consume(queue, "", false, false, false, false, r.arguments())
		return err
	})
	if err != nil {
		return nil, err
	}
	in.channel = ch
	return in, nil
}

func (r *consumer) arguments() amqp.Table {
	args := amqp.Table{}
	if p := r.options.Int("consumerPriority"); p != 0 {
		args["x-priority"] = p
	}
	if r.conn.mode == stream {
		switch next := r.next.Load(); {
		case next > 0:
			args[streamOffset] = next
		case r.start == driver.StartEarliest:
			args[streamOffset] = "first"
		default:
			args[streamOffset] = "next"
		}
	}
	return args
}

// run takes deliveries from the client library as they come, so that they are stamped then and not when Receive gets to
// them, and opens the channel again when it is lost, until Close.
func (r *consumer) run() {
	defer close(r.done)
	for in := r.intake; in != nil; in = r.reopen() {
		for d := range in.deliveries {
			r.arrive(in, &d, driver.Now())
		}
		if in.IsClosed() {
			r.fail(in.cause())
		} else {
			_ = in.Close()
			r.fail(errCanceled)
		}
	}
}

// arrive puts a delivery where Receive finds it.
func (r *consumer) arrive(in *intake, d *amqp.Delivery, now int64) {
	in.arrived.Store(d.DeliveryTag)
	t := in.token(d)
	r.mu.Lock()
	r.inbox = append(r.inbox, driver.Message{})
	n := len(r.inbox)
	r.describe(&r.inbox[n-1], d, t)
	r.inbox[n-1].Received = now
	r.mu.Unlock()
	if n == 1 {
		r.notify()
	}
}

// fail drops what is not handed out yet, since it cannot be settled any more and the broker will deliver it again.
func (r *consumer) fail(err error) {
	r.mu.Lock()
	clear(r.inbox)
	r.inbox = r.inbox[:0]
	r.lost = err
	r.mu.Unlock()
	r.notify()
}

func (r *consumer) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// reopen consumes again, as often as it takes; each new reason for its failing is one error of Receive. It gives nil
// after Close.
func (r *consumer) reopen() *intake {
	for n := 0; r.life.Err() == nil; n++ {
		in, err := attempt(r.life, n, r.open)
		if err != nil {
			r.fail(err)
			continue
		}
		r.mu.Lock()
		closed := r.life.Err() != nil
		if !closed {
			r.intake = in
		}
		r.mu.Unlock()
		if !closed {
			return in
		}
		_ = in.Close() // Close came first, and did not see this channel
	}
	return nil
}

func (r *consumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	for len(b) > 0 {
		if r.life.Err() != nil {
			return 0, driver.ErrClosed
		}
		if n := r.hand(b); n > 0 {
			return n, nil
		}
		r.mu.Lock()
		r.inbox, r.taken, r.handed = r.taken[:0], r.inbox, 0
		err := r.lost
		r.lost = nil
		r.mu.Unlock()
		if len(r.taken) > 0 {
			continue
		}
		if err != nil {
			return 0, err
		}
		select {
		case <-r.wake:
		case <-r.life.Done():
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return 0, nil
}

// Settle sends acks, which the broker never answers.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack && (r.conn.mode == stream || o != driver.Requeue && o != driver.Reject) {
		return fmt.Errorf("%s: %w", o, errors.ErrUnsupported)
	}
	if r.life.Err() != nil {
		return driver.ErrClosed
	}
	for i := 0; i < len(b); {
		first, ok := b[i].Token.(*token)
		if !ok {
			return errors.New("the message was not received by this driver")
		}
		n := i + 1
		for ; n < len(b); n++ {
			if next, ok := b[n].Token.(*token); !ok || next.intake != first.intake {
				break
			}
		}
		if err := r.settle(ctx, first.intake, b[i:n], o); err != nil {
			return err
		}
		i = n
	}
	return nil
}

func (r *consumer) Close(ctx context.Context) error {
	r.mu.Lock()
	r.stop()
	in := r.intake
	r.mu.Unlock()
	r.conn.leave(r)
	if err := errors.Join(r.replies.close(ctx), in.end(ctx)); err != nil {
		return err
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// As lends the current *amqp091.Channel.
func (r *consumer) As(target any) bool {
	to, ok := target.(**amqp.Channel)
	if !ok {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	*to = r.intake.Channel
	return true
}
