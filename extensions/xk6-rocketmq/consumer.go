package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/inbox"
)

// consumer receives from a topic for a group. Each broker of the topic is asked by itself, so that one without messages hides none of another's.
type consumer struct {
	conn  *conn
	cfg   driver.ConsumerConfig
	group string
	id    string // as servers know this consumer
	own   bool   // the group is this consumer's
	route *route
	in    *inbox.Inbox[*delivery]
	room  *inbox.Room

	held *inbox.Lent[*delivery] // received and not settled

	closing sync.RWMutex // Close waits for Settle
	closed  bool
	life    context.Context // ends with Close
	stop    context.CancelFunc
	polling sync.WaitGroup
	running sync.WaitGroup // all else
}

func (c *conn) NewConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	r := c.newConsumer(cfg)
	if err := r.begin(ctx); err != nil {
		r.in.Close()
		r.stop()
		r.polling.Wait()
		r.running.Wait()
		if r.own {
			err = errors.Join(err, c.leave(context.WithoutCancel(ctx), cfg.Topic, r.group))
		}
		return nil, err
	}
	return r, nil
}

func (c *conn) newConsumer(cfg driver.ConsumerConfig) *consumer {
	r := &consumer{
		conn: c, cfg: cfg, group: cfg.Group, id: fmt.Sprintf("%s@%016x", c.name, rand.Uint64()), room: inbox.NewRoom(cfg.Prefetch), //gosec:disable G404 -- a name, no secret
	}
	if r.group == "" {
		r.group, r.own = fmt.Sprintf("xk6-broker-%016x", rand.Uint64()), true //gosec:disable G404 -- a name, no secret
	}
	r.held = inbox.NewLent[*delivery](r.room, cfg.Options.Duration("invisibleTime"))
	r.in = inbox.New(r.hand)
	r.life, r.stop = context.WithCancel(context.Background())
	return r
}

// begin joins the group, and serves.
func (r *consumer) begin(ctx context.Context) (err error) {
	if r.route, err = r.conn.find(ctx, r.cfg.Topic); err != nil {
		return fmt.Errorf("topic %s: %w", r.cfg.Topic, err)
	}
	if err := r.conn.join(ctx, r.cfg.Topic, r.group, r.route.fifo(), r.cfg.Start, r.cfg.Options.Int("maxAttempts")); err != nil {
		return err
	}
	return r.serve(ctx)
}

// serve has every server know the consumer, and starts to receive from each broker by itself.
func (r *consumer) serve(ctx context.Context) error {
	receives := int(r.cfg.Options.Int("receives"))
	share := min(mostReceived, max(1, r.cfg.Prefetch/(receives*len(r.route.brokers)))) // so that a request which waits leaves room for the others
	for _, b := range r.route.brokers {
		s, err := r.conn.servers.at(b.address)
		if err != nil {
			return err
		}
		known, err := r.register(ctx, s)
		if err != nil {
			return err
		}
		for range receives {
			r.polling.Go(func() {
				r.in.Poll(r.room, share, func(_ context.Context, most int) ([]*delivery, error) { return r.poll(r.life, s, known, b, most) })
			})
		}
	}
	return nil
}

// hand gives what came to the application.
func (r *consumer) hand(b driver.Batch, came []*delivery) {
	for i, d := range came {
		r.held.Add(d, d.message.Received)
		b[i], d.message = d.message, driver.Message{}
		b[i].Token = d
	}
}

// Receive implements [driver.Consumer].
func (r *consumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return r.in.Receive(ctx, b)
}

// Close gives back what is not settled. A group of the consumer's own is deleted.
func (r *consumer) Close(ctx context.Context) error {
	r.in.Close()
	r.closing.Lock()
	defer r.closing.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.room.Close()
	// What a server has for a call that was given up is nobody's until invisibleTime is over.
	giveUp := context.AfterFunc(ctx, r.stop)
	r.polling.Wait()
	giveUp()
	r.stop()
	r.running.Wait()
	err := r.giveBack(ctx)
	r.unregister(ctx)
	if r.own {
		err = errors.Join(err, r.conn.leave(ctx, r.cfg.Topic, r.group))
	}
	return err
}

// settings are what servers must know of a consumer before it receives.
func (r *consumer) settings() *v2.Settings {
	kind := v2.ClientType_SIMPLE_CONSUMER
	return &v2.Settings{
		ClientType:     &kind,
		RequestTimeout: duration(2 * r.conn.options.Duration("requestTimeout")), // half of it is what a server leaves of a call's time when it waits
		PubSub: &v2.Settings_Subscription{Subscription: &v2.Subscription{
			Group:              r.conn.resource(r.group),
			Subscriptions:      []*v2.SubscriptionEntry{{Topic: r.conn.resource(r.cfg.Topic), Expression: r.filter()}},
			LongPollingTimeout: duration(r.cfg.Options.Duration("pollTime")),
		}},
		UserAgent: &v2.UA{Language: v2.Language_GOLANG, Version: "5.1.2", Platform: "xk6-broker", Hostname: bornHost()},
	}
}

func (r *consumer) filter() *v2.FilterExpression {
	return &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: r.cfg.Options.String("tags")}
}
