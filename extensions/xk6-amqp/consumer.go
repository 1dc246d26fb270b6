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
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// errCanceled is the error of a basic.cancel.
var errCanceled = &amqp.Error{
	Code: amqp.NotFound, Server: true,
	Reason: "the broker canceled the consumer: the queue is deleted, or its node is gone",
}

// consumer consumes on a channel of its own, and opens another one after it is lost.
type consumer struct {
	conn     *conn
	topic    string
	group    string
	prefetch int
	start    driver.Start
	options  driver.Values

	mu     sync.Mutex
	intake *intake
	inbox  *inbox.Inbox[driver.Message]
	next   atomic.Int64 // the offset in a stream after the last received message; 0 before it

	settling sync.Mutex // guards settled of every intake
	replies  replies

	life context.Context // ends with Close, and with the connection
	stop context.CancelFunc
	done chan struct{} // closed after the last message has arrived
}

// intake is a channel that consumes from a queue.
type intake struct {
	*channel
	queue      string
	deliveries <-chan amqp.Delivery
	tokens     []token // not used yet
	settled    settled
}

// token is the handle of a message for Settle and Reply.
type token struct {
	intake *intake
	tag    uint64
	offset int64    // in a stream
	asked  *request // nil if no reply is asked for
}

// request has the address of a reply.
type request struct{ replyTo, correlationID string }

func (c *conn) NewConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	if cfg.Prefetch > math.MaxUint16 {
		return nil, rejectedError(
			fmt.Sprintf("a prefetch of %d is larger than AMQP's maximum, %d", cfg.Prefetch, math.MaxUint16),
		)
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
		inbox:    inbox.New(func(b driver.Batch, arrived []driver.Message) { copy(b, arrived) }),
		done:     make(chan struct{}),
	}
	r.life, r.stop = context.WithCancel(c.life)
	if err := process.join(r); err != nil {
		r.stop()
		return nil, err
	}
	in, err := r.open(ctx)
	if err != nil {
		r.stop()
		process.leave(r)
		return nil, err
	}
	r.mu.Lock()
	r.intake = in
	r.mu.Unlock()
	c.running.Go(r.run)
	return r, nil
}

// refuse returns an error if the kind of topic does not support the configuration.
func (c *conn) refuse(cfg driver.ConsumerConfig) error {
	switch {
	case c.mode == queue && cfg.Start != driver.StartEarliest:
		return fmt.Errorf("a queue is always read from its oldest message: start new: %w", errors.ErrUnsupported)
	case c.mode == pubsub && cfg.Start != driver.StartNew:
		return fmt.Errorf("an exchange keeps no messages: start earliest: %w", errors.ErrUnsupported)
	case c.mode == stream && cfg.Group != "":
		return fmt.Errorf("every consumer reads a stream on its own: group: %w", errors.ErrUnsupported)
	}
	if c.mode == pubsub && cfg.Group != "" {
		return short(cfg.Topic, groupQueue(cfg.Topic, cfg.Group), cfg.Options.String("bindingKey"))
	}
	return short(cfg.Topic, cfg.Options.String("bindingKey"))
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

// run stamps deliveries as they arrive, before Receive is called, and opens the channel again after
// it is lost, until Close.
func (r *consumer) run() {
	defer close(r.done)
	defer r.inbox.Close()
	for in := r.intake; in != nil; in = r.reopen() {
		for d := range in.deliveries {
			r.inbox.Put(r.message(in, &d, driver.Now()))
		}
		if in.IsClosed() {
			r.fail(in.cause())
		} else {
			_ = in.Close()
			r.fail(errCanceled)
		}
	}
}

// fail drops the queued messages: they cannot be settled any more, and are delivered again.
func (r *consumer) fail(err error) {
	r.inbox.Clear()
	r.inbox.Fail(err)
}

// reopen consumes again, as often as necessary. Receive returns each new error. It returns nil
// after Close.
func (r *consumer) reopen() *intake {
	in, ok := again(r.life, r.conn.reopenTimeout, r.open, r.fail)
	if !ok {
		return nil
	}
	r.mu.Lock()
	closed := r.life.Err() != nil
	if !closed {
		r.intake = in
	}
	r.mu.Unlock()
	if closed {
		_ = in.Close() // Close was called before and did not see this channel
		return nil
	}
	return in
}

// Receive skips messages of a lost channel: they cannot be settled and are delivered again. All
// queued messages are of one channel.
func (r *consumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	for {
		n, err := r.inbox.Receive(ctx, b)
		if n == 0 {
			return 0, err
		}
		if first, last := tokenOf(b[0]), tokenOf(b[n-1]); !first.intake.IsClosed() {
			if r.conn.mode == stream {
				r.next.Store(last.offset + 1)
			}
			return n, nil
		}
		clear(b[:n])
	}
}

// Settle sends acknowledgements, which the broker never answers.
func (r *consumer) Settle(ctx context.Context, b driver.Batch, o driver.Outcome) error {
	if o != driver.Ack && (r.conn.mode == stream || o != driver.Requeue && o != driver.Reject) {
		return fmt.Errorf("%s: %w", o, errors.ErrUnsupported)
	}
	if r.life.Err() != nil {
		return driver.ErrClosed
	}
	for i := 0; i < len(b); {
		first := tokenOf(b[i])
		if first == nil {
			return errors.New("the message was not received by this driver")
		}
		n := i + 1
		for ; n < len(b); n++ {
			if next := tokenOf(b[n]); next == nil || next.intake != first.intake {
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
	r.inbox.Close()
	defer process.leave(r) // until its channel is closed it holds its unsettled messages
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
