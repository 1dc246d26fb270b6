package amqp1

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// consumer has a link, and opens another one when that is lost.
type consumer struct {
	conn     *conn
	topic    string
	group    string
	prefetch int
	confirm  bool // settlements are confirmed
	requeue  string
	selector string
	source   string // the option groupAddress
	in       *inbox.Inbox[*delivery]
	replies  *redial.Link[*relay]

	life context.Context // ends with Close
	stop context.CancelFunc
	over chan struct{} // closed when no more will arrive

	mu     sync.Mutex
	intake *intake
	held   map[*delivery]struct{} // received and not settled
	closed bool

	closing sync.Mutex
}

// intake is a link to receive on, with its session.
type intake struct {
	session  *amqp.Session
	receiver *amqp.Receiver
	credit   *credit
	on       *connection
	lost     atomic.Bool
}

// delivery is one message as it was delivered once.
type delivery struct {
	intake  *intake
	message *amqp.Message
	at      int64
	settled atomic.Bool
}

// NewConsumer opens a link from the topic's address, or from the group's subscription, which it makes where it is not there.
func (c *conn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	switch {
	case c.mode == queue && config.Group != "":
		return nil, fmt.Errorf("all consumers of a queue share it: group: %w", errors.ErrUnsupported)
	case c.mode == queue && config.Start != driver.StartEarliest:
		return nil, fmt.Errorf("a queue is always read from its oldest message: start new: %w", errors.ErrUnsupported)
	case c.mode == pubsub && config.Start != driver.StartNew:
		return nil, fmt.Errorf("a subscription begins when it is made: start earliest: %w", errors.ErrUnsupported)
	}
	o := config.Options
	r := &consumer{
		conn: c, topic: config.Topic, group: config.Group, prefetch: config.Prefetch, confirm: config.ConfirmSettle,
		requeue: o.String("requeue"), selector: o.String("selector"), source: o.String("groupAddress"),
		over: make(chan struct{}), held: map[*delivery]struct{}{},
	}
	r.in = inbox.New(r.hand)
	r.replies = newRelay(c)
	r.life, r.stop = context.WithCancel(context.Background())
	in, err := r.open(ctx)
	if err != nil {
		r.stop()
		return nil, err
	}
	r.intake = in
	process.join(r)
	go r.run(in)
	return r, nil
}

// open opens the link, and gives credit.
func (r *consumer) open(ctx context.Context) (*intake, error) {
	in := &intake{}
	err := r.conn.session(ctx, func(ctx context.Context, s *amqp.Session, on *connection) (err error) {
		in.session, in.on = s, on
		address, options, err := r.terminus(ctx, on)
		if err != nil {
			return err
		}
		in.receiver, err = s.NewReceiver(ctx, address, options)
		return r.unconfirmed(on, err)
	})
	if err != nil {
		return nil, err
	}
	in.credit = newCredit(r.prefetch, in.receiver.IssueCredit)
	in.credit.settled(0)
	return in, nil
}

// run takes messages from the client library as they come, so that they are stamped then, and opens the link again when it is lost, until Close.
func (r *consumer) run(in *intake) {
	defer close(r.over)
	for in != nil {
		err := r.take(in)
		if r.life.Err() != nil {
			return
		}
		in.lost.Store(true)
		r.fail(err)
		r.abandon(in)
		in = r.reopen()
	}
}

// take takes messages until there are no more, and tells why.
func (r *consumer) take(in *intake) error {
	var some []*delivery
	for {
		m, err := in.receiver.Receive(r.life, nil)
		if err != nil {
			return err
		}
		for ; m != nil; m = in.receiver.Prefetched() {
			some = append(some, &delivery{intake: in, message: m, at: driver.Now()})
		}
		in.credit.arrived(len(some))
		r.in.Put(some...)
		clear(some)
		some = some[:0]
	}
}

// fail drops what cannot be settled any more and will be delivered again.
func (r *consumer) fail(err error) {
	r.in.Clear()
	r.mu.Lock()
	clear(r.held)
	r.mu.Unlock()
	r.in.Fail(err)
}

// abandon ends the session of a link that is gone, where that is all that is.
func (r *consumer) abandon(in *intake) {
	ctx, cancel := context.WithTimeout(r.life, r.conn.timeout)
	defer cancel()
	_ = in.session.Close(ctx)
}

// reopen opens a link, as often as it takes; each new reason for its failing is one error of Receive. It gives nil after Close.
func (r *consumer) reopen() *intake {
	in, ok := redial.Until(r.life, r.open, r.in.Fail)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.intake = in // Close, which comes after that, or has ended life, ends its session
	return in
}

// hand gives out what has come, and notes it as held.
func (r *consumer) hand(b driver.Batch, came []*delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range came {
		if !d.intake.lost.Load() {
			r.held[d] = struct{}{}
		}
		b[i] = d.received(r.topic)
		d.intake.credit.received(1)
	}
}

// Receive takes what has come.
func (r *consumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return r.in.Receive(ctx, b)
}

// Close gives back what is not settled, and ends the session. The link is not closed by itself, as that would delete the subscription.
func (r *consumer) Close(ctx context.Context) error {
	r.in.Close()
	r.stop()
	r.closing.Lock()
	defer r.closing.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	defer process.leave(r)
	_ = r.replies.Close(func(y *relay) error { return y.session.Close(ctx) })
	select {
	case <-r.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	in := r.current()
	if !in.lost.Load() {
		r.giveBack(ctx, in)
	}
	_ = in.session.Close(ctx)
	return nil
}

// current is the link that is there, or was there last.
func (r *consumer) current() *intake {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.intake
}

// As lends the current *amqp.Receiver.
func (r *consumer) As(target any) bool { return driver.As(target, r.current().receiver) }
