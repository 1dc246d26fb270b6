package mongodb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// consumer has several commands under way, each of which leases one message.
type consumer struct {
	conn         *conn
	topic        string
	lease, delay time.Duration
	most         int32 // deliveries of a message; 0 is without end

	leases   *mongo.Collection // the topic: a lease that a crash takes back is over, so no other member and no disk is waited for
	settling *mongo.Collection // the topic, with the consumer's write concern
	dead     *mongo.Collection // where rejected messages go; nil where they go nowhere

	in      *inbox.Inbox[*delivery]
	room    *inbox.Room
	idle    *idle
	lookOut func(ctx context.Context) error // waits until there may be something

	work  context.Context // ends when Close gives up waiting for what is being fetched
	stop  context.CancelFunc
	watch context.CancelFunc // ends the change stream
	loops sync.WaitGroup

	held *inbox.Lent[*delivery] // received and not settled

	mu   sync.Mutex
	lost []lost

	leaving atomic.Bool
	closing sync.Mutex
	closed  bool
}

// delivery is one message as it was delivered once. The token of its lease is this delivery's alone.
type delivery struct {
	id      bson.RawValue
	token   bson.ObjectID
	message driver.Message
}

// NewConsumer fails where the topic does not exist, or is none, and begins to take messages.
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
	with := options.Collection().SetWriteConcern(w.of())
	r := &consumer{
		conn: c, topic: config.Topic, lease: o.Duration("lease"), delay: o.Duration("requeueDelay"), most: int32(o.Int("maxAttempts")), //gosec:disable G115 -- the option has limits
		leases:   c.db.Collection(config.Topic, options.Collection().SetWriteConcern(writeconcern.W1())),
		settling: c.db.Collection(config.Topic, with),
		room:     inbox.NewRoom(config.Prefetch), idle: newIdle(),
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
	r.held = inbox.NewLent[*delivery](r.room, r.lease)
	r.in = inbox.New(r.hand)
	r.work, r.stop = context.WithCancel(context.Background())
	if err := r.learn(ctx, o); err != nil {
		r.stop()
		return nil, err
	}
	for range o.Int("inFlight") {
		r.loops.Go(func() { r.in.Poll(r.room, 1, r.fetch) })
	}
	return r, nil
}

// hand gives out what has come, and notes it as held.
func (r *consumer) hand(b driver.Batch, came []*delivery) {
	for i, d := range came {
		r.held.Add(d, d.message.Received)
		b[i], d.message = d.message, driver.Message{}
		b[i].Token = d
	}
}

// Receive takes what has come.
func (r *consumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return r.in.Receive(ctx, b)
}

// Close gives back what is not settled.
func (r *consumer) Close(ctx context.Context) error {
	r.leaving.Store(true)
	r.in.Close()
	r.closing.Lock()
	defer r.closing.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.watch()
	stop := context.AfterFunc(ctx, r.stop)
	r.loops.Wait() // what is being fetched would else be nobody's for a lease
	stop()
	err := r.giveBack(ctx)
	r.stop()
	r.room.Close()
	return err
}
