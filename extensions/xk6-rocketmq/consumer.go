package rocketmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/lease"
)

// consumer receives from a topic for a group. It asks each broker separately, so that a broker
// without messages does not delay the others.
type consumer struct {
	*lease.Consumer[handle]
	conn  *conn
	cfg   driver.ConsumerConfig
	group string
	id    string // the client ID for servers
	own   bool   // the group belongs to this consumer only
	route *route

	life    context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup // sessions
}

// handle is one delivery of a message.
type handle struct {
	from    *server
	id      string
	receipt string
	place   driver.Place
}

type delivery = lease.Delivery[handle]

// NewConsumer joins the group and begins to receive.
func (c *conn) NewConsumer(ctx context.Context, cfg driver.ConsumerConfig) (driver.Consumer, error) {
	r := c.newConsumer(cfg)
	if err := r.begin(ctx); err != nil {
		r.stop()
		_ = r.Consumer.Close(ctx, func(_, _ []*delivery) error { return nil })
		r.running.Wait()
		if r.own {
			err = errors.Join(err, c.leave(context.WithoutCancel(ctx), cfg.Topic, r.group))
		}
		return nil, err
	}
	return r, nil
}

func (c *conn) newConsumer(cfg driver.ConsumerConfig) *consumer {
	r := &consumer{conn: c, cfg: cfg, group: cfg.Group, id: c.name + "@" + rand.Text()}
	if r.group == "" {
		r.group, r.own = "xk6-broker-"+rand.Text(), true
	}
	r.Consumer = lease.New[handle](lease.Config{
		Prefetch: cfg.Prefetch, Time: cfg.Options.Duration("invisibleTime"), Settled: errSettled,
	})
	r.life, r.stop = context.WithCancel(context.Background())
	return r
}

// begin joins the group and serves.
func (r *consumer) begin(ctx context.Context) (err error) {
	if r.route, err = r.conn.find(ctx, r.cfg.Topic); err != nil {
		return fmt.Errorf("topic %s: %w", r.cfg.Topic, err)
	}
	attempts := r.cfg.Options.Int("maxAttempts")
	if err := r.conn.join(ctx, r.cfg.Topic, r.group, r.route.fifo(), r.cfg.Start, attempts); err != nil {
		return err
	}
	return r.serve(ctx)
}

// serve registers the consumer with every server and starts to receive from each broker. A request
// asks for a share of the prefetch, so that one that waits leaves room for the others.
func (r *consumer) serve(ctx context.Context) error {
	receives := int(r.cfg.Options.Int("receives"))
	share := min(mostReceived, max(1, r.cfg.Prefetch/(receives*len(r.route.brokers))))
	for _, b := range r.route.brokers {
		s, err := r.conn.servers.at(b.address)
		if err != nil {
			return err
		}
		registered, err := r.register(ctx, s)
		if err != nil {
			return err
		}
		for range receives {
			r.Poll(share, func(_ context.Context, most int) ([]*delivery, error) {
				return r.poll(r.Fetching(), s, registered, b, most)
			})
		}
	}
	return nil
}

// Close gives back the messages that are not settled, and deletes a group of the consumer's own.
func (r *consumer) Close(ctx context.Context) error {
	return r.Consumer.Close(ctx, func(held, unseen []*delivery) error {
		r.stop()
		r.running.Wait()
		err := r.giveBack(ctx, append(held, unseen...))
		r.unregister(ctx)
		if r.own {
			err = errors.Join(err, r.conn.leave(ctx, r.cfg.Topic, r.group))
		}
		return err
	})
}

// settings describe the consumer to servers. They wait for half of RequestTimeout.
func (r *consumer) settings() *v2.Settings {
	kind := v2.ClientType_SIMPLE_CONSUMER
	return &v2.Settings{
		ClientType:     &kind,
		RequestTimeout: duration(2 * r.conn.options.Duration("requestTimeout")),
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
