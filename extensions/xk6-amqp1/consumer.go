package amqp1

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

var errGroup = fmt.Errorf("all consumers of a queue share it: group: %w", errors.ErrUnsupported)

// consumer has a link, and opens another one after it is lost.
type consumer struct {
	conn   *conn
	config driver.ConsumerConfig
	in     *inbox.Inbox[*delivery]

	life context.Context // ends with Close
	stop context.CancelFunc
	done chan struct{} // closed after the last message has arrived

	mu     sync.Mutex
	intake *intake
	held   map[*delivery]struct{} // received and not settled
}

// intake is a link to receive from, with its session.
type intake struct {
	session  *amqp.Session
	receiver *amqp.Receiver
	on       *connection
}

// delivery is one delivery of a message.
type delivery struct {
	intake  *intake
	message *amqp.Message
	at      int64
	settled atomic.Bool
}

// NewConsumer opens a link from the topic's address, or from the group's subscription, which the
// broker makes if it is absent.
func (c *conn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	switch {
	case c.mode == queue && config.Group != "":
		return nil, errGroup
	case c.mode == queue && config.Start != driver.StartEarliest:
		return nil, fmt.Errorf("a queue is always read from its oldest message: start new: %w", errors.ErrUnsupported)
	case c.mode == pubsub && config.Start != driver.StartNew:
		return nil, fmt.Errorf("a subscription begins when it is made: start earliest: %w", errors.ErrUnsupported)
	}
	r := &consumer{conn: c, config: config, done: make(chan struct{}), held: map[*delivery]struct{}{}}
	r.in = inbox.New(r.hand)
	r.life, r.stop = context.WithCancel(context.Background())
	in, err := r.open(ctx)
	if err != nil {
		r.stop()
		return nil, err
	}
	r.intake = in
	go r.run(in)
	return r, nil
}

func (r *consumer) open(ctx context.Context) (*intake, error) {
	in := &intake{}
	address, options := r.source()
	err := r.conn.session(ctx, func(ctx context.Context, s *amqp.Session, on *connection) (err error) {
		in.session, in.on = s, on
		in.receiver, err = s.NewReceiver(ctx, cmp.Or(address, r.conn.address(on, r.config.Topic)), options)
		if err != nil && r.config.ConfirmSettle && strings.Contains(err.Error(), "settle") {
			return fmt.Errorf("%s does not confirm settlements (rcv-settle-mode second): %w: %w",
				on.product, err, errors.ErrUnsupported)
		}
		return err
	})
	return in, err
}

// source returns the options of the link, and its address if it is not the topic's. By AMQP's
// bindings of JMS they ask for a durable shared subscription of a group, or for the consumer's own.
func (r *consumer) source() (address string, o *amqp.ReceiverOptions) {
	topic, group := r.config.Topic, r.config.Group
	o = &amqp.ReceiverOptions{
		Credit:         int32(min(r.config.Prefetch, 1<<30)), //gosec:disable G115 -- limited
		SettlementMode: amqp.ReceiverSettleModeFirst.Ptr(),
	}
	if r.config.ConfirmSettle {
		o.SettlementMode = amqp.ReceiverSettleModeSecond.Ptr()
	}
	if selector := r.config.Options.String("selector"); selector != "" {
		o.Filters = []amqp.LinkFilter{amqp.NewSelectorFilter(selector)}
	}
	if template := r.config.Options.String("groupAddress"); group != "" && template != "" {
		return strings.NewReplacer("{topic}", topic, "{group}", group).Replace(template), o
	}
	o.SourceCapabilities = []string{r.conn.mode.capability()}
	if group != "" {
		o.SourceCapabilities = append(o.SourceCapabilities, "shared", "global")
		o.SourceDurability, o.SourceExpiryPolicy = amqp.DurabilityUnsettledState, amqp.ExpiryPolicyNever
		o.Name = subscription(topic, group) + "|" + rand.Text() // brokers ignore the part behind the bar
	}
	return "", o
}

// subscription names a group. Brokers identify subscriptions by name alone.
func subscription(topic, group string) string { return topic + "." + group }

// run stamps messages as they arrive, and opens the link again after it is lost, until Close.
func (r *consumer) run(in *intake) {
	defer close(r.done)
	for ok := true; ok; {
		err := r.take(in)
		if r.life.Err() != nil {
			return
		}
		r.in.Clear() // the broker delivers them again, and the held ones
		r.mu.Lock()
		clear(r.held)
		r.mu.Unlock()
		r.in.Fail(err)
		r.abandon(in)
		if in, ok = redial.Until(r.life, r.open, r.in.Fail); ok {
			r.mu.Lock()
			r.intake = in
			r.mu.Unlock()
		}
	}
}

// take takes messages until there are no more, and returns the reason.
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
		r.in.Put(some...)
		clear(some)
		some = some[:0]
	}
}

// abandon ends the session of a lost link.
func (r *consumer) abandon(in *intake) {
	ctx, cancel := context.WithTimeout(r.life, r.conn.timeout)
	defer cancel()
	_ = in.session.Close(ctx)
}

func (r *consumer) hand(b driver.Batch, deliveries []*delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range deliveries {
		r.held[d] = struct{}{}
		b[i] = d.received(r.config.Topic)
	}
}

// Receive implements [driver.Consumer].
func (r *consumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return r.in.Receive(ctx, b)
}

// Close gives the held messages back as failed deliveries, and ends the session, so that the broker
// delivers the queued ones again. Closing the link would delete the subscription.
func (r *consumer) Close(ctx context.Context) error {
	first := r.in.Close()
	r.stop()
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if first {
		r.giveBack(ctx)
		_ = r.current().session.Close(ctx)
	}
	return nil
}

// giveBack waits until ctx ends: the client library waits longer for a network that takes nothing.
func (r *consumer) giveBack(ctx context.Context) {
	r.mu.Lock()
	held := slices.SortedFunc(maps.Keys(r.held), func(a, b *delivery) int { return cmp.Compare(a.at, b.at) })
	clear(r.held)
	r.mu.Unlock()
	back := make(chan struct{})
	go func() {
		defer close(back)
		for _, d := range held {
			if !d.settled.Swap(true) && modify(ctx, d) != nil {
				return
			}
		}
	}()
	select {
	case <-back:
	case <-ctx.Done():
	}
}

// current returns the last link.
func (r *consumer) current() *intake {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.intake
}
