package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/lease"
)

// maxFetch is the largest number of messages that one statement leases. The first of them wait for
// the last.
const maxFetch = 1000

// consumer has two connections: one leases messages and waits for notifications, one settles.
type consumer struct {
	*lease.Consumer[row]
	topic       topic
	time, delay time.Duration
	dead        topic // for rejected messages; without a name they are deleted
	fetching    *line
	settling    *line

	dry  bool      // the last fetch emptied the topic: wait for a notification
	look time.Time // when to look without a notification, because a lease may have expired
}

// row is one delivery of a message. The attempt distinguishes deliveries.
type row struct {
	id      int64
	attempt int32
}

type delivery = lease.Delivery[row]

// NewConsumer connects, listens, and begins to fetch.
func (c *conn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	if config.Group != "" {
		return nil, fmt.Errorf("groups: %w", errors.ErrUnsupported)
	}
	if config.Start != driver.StartEarliest {
		return nil, fmt.Errorf("start %v: %w", config.Start, errors.ErrUnsupported)
	}
	t, err := c.topic(config.Topic)
	if err != nil {
		return nil, err
	}
	o := config.Options
	r := &consumer{
		topic: t,
		time:  o.Duration("lease"),
		delay: o.Duration("requeueDelay"),
	}
	if name := o.String("deadLetter"); name != "" {
		if r.dead, err = c.topic(name); err != nil {
			return nil, err
		}
	}
	commit := o.String("synchronousCommit")
	r.Consumer = lease.New[row](lease.Config{Prefetch: config.Prefetch, Time: r.time, Settled: errSettled})
	r.fetching = c.newLine(r.prepareFetch)
	r.settling = c.newLine(func(ctx context.Context, s *session) error { return r.prepareSettle(ctx, s, commit) })
	for _, l := range []*line{r.fetching, r.settling} {
		if err := l.do(ctx, func(context.Context, *session) error { return nil }); err != nil {
			_ = r.Close(ctx)
			return nil, err
		}
	}
	r.Poll(maxFetch, r.fetch)
	return r, nil
}

// Close gives back the messages that are not settled.
func (r *consumer) Close(ctx context.Context) error {
	err := r.Consumer.Close(ctx, func(held, unseen []*delivery) error { return r.giveBack(ctx, held, unseen) })
	return errors.Join(err, r.fetching.close(ctx), r.settling.close(ctx))
}
