package mongodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/lease"
)

// consumer sends several commands at a time. Each command leases one message.
type consumer struct {
	*lease.Consumer[document]
	conn        *conn
	topic       string
	time, delay time.Duration
	most        int32 // deliveries of a message; 0 is no limit

	leases   *mongo.Collection // the topic; a crash ends leases, so they wait for no other member and no disk
	settling *mongo.Collection // the topic, with the consumer's write concern
	dead     *mongo.Collection // for rejected messages; nil deletes them

	idle  *idle
	await func(ctx context.Context) error // waits until there may be a message
}

// document is one delivery of a message. The token of the lease belongs to this delivery only.
type document struct {
	id    bson.RawValue
	token bson.ObjectID
}

type delivery = lease.Delivery[document]

// NewConsumer begins to fetch. It fails if the topic does not exist.
func (c *conn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	if config.Group != "" {
		return nil, fmt.Errorf("groups: %w", errors.ErrUnsupported)
	}
	if config.Start != driver.StartEarliest {
		return nil, fmt.Errorf("start %v: %w", config.Start, errors.ErrUnsupported)
	}
	o := config.Options
	w, err := parseConcern(o)
	if err != nil {
		return nil, err
	}
	if !w.majority {
		w.members = max(1, w.members) // a settlement is confirmed
	}
	if err := c.exists(ctx, config.Topic); err != nil {
		return nil, err
	}
	with := options.Collection().SetWriteConcern(w.writeConcern())
	r := &consumer{
		conn: c, topic: config.Topic, time: o.Duration("lease"), delay: o.Duration("requeueDelay"),
		most:     int32(o.Int("maxAttempts")), //gosec:disable G115 -- the option has limits
		leases:   c.db.Collection(config.Topic, options.Collection().SetWriteConcern(writeconcern.W1())),
		settling: c.db.Collection(config.Topic, with),
		idle:     newIdle(),
	}
	if r.most == 1 {
		c.once.Store(true)
	}
	if dead := o.String("deadLetter"); dead != "" {
		if err := c.exists(ctx, dead); err != nil {
			return nil, &driver.OptionError{Name: "deadLetter", Err: err}
		}
		r.dead = c.db.Collection(dead, with)
	}
	r.Consumer = lease.New[document](lease.Config{Prefetch: config.Prefetch, Time: r.time, Settled: errSettled})
	if err := r.observe(ctx, o); err != nil {
		_ = r.Close(ctx)
		return nil, err
	}
	for range o.Int("inFlight") {
		r.Poll(1, r.fetch)
	}
	return r, nil
}

// Close gives back the messages that are not settled.
func (r *consumer) Close(ctx context.Context) error {
	return r.Consumer.Close(ctx, func(held, unseen []*delivery) error { return r.giveBack(ctx, held, unseen) })
}
