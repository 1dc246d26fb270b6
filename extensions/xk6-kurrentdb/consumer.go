package kurrentdb

import (
	"context"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/redial"
)

// NewConsumer returns a member of a group, or a follower of the stream without one. The topic must
// exist.
func (c *conn) NewConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	if _, err := c.topic(ctx, cfg.Topic); err != nil {
		return nil, err
	}
	if cfg.Group == "" {
		return c.newFollower(ctx, cfg)
	}
	return c.newMember(ctx, cfg)
}

// feed is one subscription.
type feed interface {
	// read puts messages into the inbox until the subscription breaks, and returns the reason.
	read() error
	end()
}

// consumer is the common part of both kinds of consumers.
type consumer struct {
	conn *conn
	cfg  driver.ConsumerConfig
	in   *inbox.Inbox[*delivery]

	life    context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup
}

func (c *conn) newConsumer(cfg driver.ConsumerConfig, hand func(driver.Batch, []*delivery)) *consumer {
	r := &consumer{conn: c, cfg: cfg, in: inbox.New(hand)}
	r.life, r.stop = context.WithCancel(context.Background())
	return r
}

// begin subscribes, and again after each subscription that breaks, until Close.
func (r *consumer) begin(ctx context.Context, open func(context.Context) (feed, error)) error {
	f, err := open(ctx)
	if err != nil {
		r.stop()
		return err
	}
	r.running.Go(func() {
		for {
			err := f.read()
			f.end()
			if r.life.Err() != nil {
				return
			}
			r.in.Fail(err)
			if !redial.Sleep(r.life, 1) { // a subscription that breaks at once must not spin
				return
			}
			again, ok := redial.Until(r.life, open, r.in.Fail)
			if !ok {
				return
			}
			f = again
		}
	})
	return nil
}

// Receive implements [driver.Consumer].
func (r *consumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return r.in.Receive(ctx, b)
}
