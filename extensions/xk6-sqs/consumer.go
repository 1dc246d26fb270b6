package sqs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/lease"
)

var errGroups = fmt.Errorf("groups: a queue has one, without a name: %w", errors.ErrUnsupported)

// consumer has several long polls under way. They are not canceled, unless Close must not wait,
// because the service would lease messages without a receiver.
type consumer struct {
	*lease.Consumer[handle]
	conn     *conn
	topic    string
	url      string
	client   *client
	groups   *numbering // of a FIFO queue
	requests int

	wait, visibility, delay time.Duration // delay is of requeued messages
}

// handle is one delivery of a message.
type handle struct {
	receipt *string
	sent    int64 // ms since the Unix epoch
}

type delivery = lease.Delivery[handle]

// NewConsumer begins to receive. It fails if the queue does not exist.
func (c *conn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	if config.Group != "" {
		return nil, errGroups
	}
	if config.Start != driver.StartEarliest {
		return nil, fmt.Errorf("start %v: %w", config.Start, errors.ErrUnsupported)
	}
	url, err := c.queue(ctx, config.Topic)
	if err != nil {
		return nil, err
	}
	o := config.Options
	requests := int(o.Int("inFlight"))
	r := &consumer{
		conn: c, topic: config.Topic, url: url, client: c.endpoint.client(2 * requests), requests: requests,
		wait: o.Duration("waitTime"), visibility: o.Duration("visibilityTimeout"), delay: o.Duration("requeueDelay"),
	}
	if c.kind == fifo {
		r.groups = &numbering{numbers: map[string]int32{}}
	}
	r.Consumer = lease.New[handle](lease.Config{
		Prefetch: config.Prefetch, Time: r.visibility, Settled: errSettled, Ahead: requests * maxEntries,
	})
	for range requests {
		r.Poll(maxEntries, r.fetch)
	}
	return r, nil
}

// place returns when the service stored a message.
func place(m *driver.Message) driver.Place {
	d, ok := m.Token.(*delivery)
	if !ok {
		return driver.Place{}
	}
	return driver.Place{Partition: m.Partition, Timestamp: d.Handle.sent * int64(time.Millisecond)}
}

// Close waits for the long polls, and gives back the messages that are not settled.
func (r *consumer) Close(ctx context.Context) error {
	err := r.Consumer.Close(ctx, func(held, unseen []*delivery) error { return r.giveBack(ctx, append(held, unseen...)) })
	r.client.hangUp()
	return err
}
