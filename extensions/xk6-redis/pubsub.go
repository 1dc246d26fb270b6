package redis

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func pubsub() driver.Driver {
	return driver.Driver{
		Name:    "redis-pubsub",
		Schemes: []string{"redis-pubsub"},
		Doc:     "Redis Pub/Sub: PUBLISH and SUBSCRIBE, at most once, to those who listen.",
		Features: driver.Features{
			Order: driver.PerTopic, Confirm: driver.Accepted, Deliver: driver.AtMostOnce, Start: driver.StartNew,
			Async: true, Fanout: true, MaxMessageBytes: maxBulk,
		},
		Options: append(connectOptions(), driver.Option{
			Name: "sharded", Scope: driver.OnConnect, Type: driver.Bool,
			Doc: "Use SPUBLISH and SSUBSCRIBE, which stay within the shard that has the channel (Redis 7 or later).",
		}, driver.Option{
			Name: "requireSubscriber", Scope: driver.OnProducer, Type: driver.Bool,
			Doc: "Treat it as an error that a message reached no subscriber.",
		}),
		Open:     openPubsub,
		Classify: classify,
	}
}

// pubsubConn is a connection whose topics are channels.
type pubsubConn struct{ *conn }

func openPubsub(ctx context.Context, t driver.Target) (driver.Conn, error) {
	c, err := open(ctx, t)
	if err != nil {
		return nil, err
	}
	return pubsubConn{c}, nil
}

// verb is a command in the form that the option sharded asks for.
func (c pubsubConn) verb(name string) string {
	if c.options.Bool("sharded") {
		return "S" + name
	}
	return name
}

// NewProducer returns a producer that publishes to a channel.
func (c pubsubConn) NewProducer(ctx context.Context, p driver.ProducerConfig) (driver.Producer, error) {
	fixed := appendBulk(appendBulk(appendArray(nil, 3), c.verb("PUBLISH")), p.Topic)
	must := p.Options.Bool("requireSubscriber")
	return c.newProducer(ctx, p, &producer{
		command: func(b []byte, m *driver.Message) []byte { return appendBulk(append(b, fixed...), m.Body) },
		answer: func(r reader, _ *driver.Place) error {
			n, err := r.integer()
			if err == nil && n == 0 && must {
				return errNoSubscriber
			}
			return err
		},
	})
}

// pubsubConsumer is a subscriber.
type pubsubConsumer struct {
	*intake
	topic   string
	command []byte
	link    *link
}

// NewConsumer subscribes to a channel.
func (c pubsubConn) NewConsumer(ctx context.Context, config driver.ConsumerConfig) (driver.Consumer, error) {
	if config.Group != "" {
		return nil, fmt.Errorf("groups: %w", errors.ErrUnsupported)
	}
	if config.Start != driver.StartNew {
		return nil, fmt.Errorf("start %v: %w", config.Start, errors.ErrUnsupported)
	}
	s := &pubsubConsumer{
		intake: newIntake(config.Prefetch, false), topic: config.Topic, link: c.link(config.Topic, 0),
		command: appendCommand(nil, c.verb("SUBSCRIBE"), config.Topic),
	}
	if err := s.subscribe(ctx); err != nil {
		_ = s.link.end(ctx)
		return nil, err
	}
	return s, nil
}

// Receive implements [driver.Consumer].
func (s *pubsubConsumer) Receive(ctx context.Context, b driver.Batch) (int, error) {
	return s.receive(ctx, b, s.subscribe)
}

// subscribe makes sure that there is a subscription, over a new connection if need be.
func (s *pubsubConsumer) subscribe(ctx context.Context) error {
	if s.begin() == 0 {
		return nil
	}
	w, err := s.link.Get(ctx)
	if err != nil {
		s.finish(nil)
		return err
	}
	x := &subscription{pubsubConsumer: s, wire: w, ready: make(chan struct{}), done: make(chan struct{})}
	if err := w.put(x); err != nil {
		s.finish(nil)
		return err
	}
	select {
	case <-x.ready:
		return nil
	case <-x.done:
		return x.err
	case <-ctx.Done():
		w.abort(ctx.Err())
		<-x.done
		return ctx.Err()
	}
}

// subscription is SUBSCRIBE, whose reply goes on as long as the connection.
type subscription struct {
	*pubsubConsumer
	wire  *wire
	ready chan struct{} // closed when the server has confirmed
	done  chan struct{} // closed at the end
	err   error         // why, where it never was ready
	pings int           // sent since the server was last heard
}

func (x *subscription) encode(b []byte) ([]byte, int) { return append(b, x.command...), 1 }

func (x *subscription) read(r reader, i int) error {
	for {
		if err := x.await(r); err != nil {
			return err
		}
		err := x.push(r)
		if err != nil {
			if answered(err) { // the command was refused
				x.end(i, err)
			}
			return err
		}
	}
}

// await returns when there is data to read. After a long silence it sends a PING.
func (x *subscription) await(r reader) error {
	for {
		_, err := r.Peek(1)
		if err == nil {
			x.pings = 0
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || x.pings > 0 {
			return err
		}
		x.pings++
		x.wire.heard = driver.Now() // so that the answer has its own time
		if err := x.wire.put(ping{}); err != nil {
			return err
		}
	}
}

// push reads one message of the subscription.
func (x *subscription) push(r reader) error {
	now := driver.Now()
	n, err := r.array()
	if err != nil {
		return err
	}
	kind, err := r.text()
	if err != nil {
		return err
	}
	for range n - 2 { // the channel
		if _, err := r.skip(); err != nil {
			return err
		}
	}
	if kind == "subscribe" || kind == "ssubscribe" {
		_, err := r.skip()
		close(x.ready)
		return err
	}
	body, err := r.bulk()
	if err != nil || kind != "message" && kind != "smessage" {
		return err
	}
	// Without room this waits. The server drops subscribers that do not read.
	if _, err := x.room.Reserve(context.Background(), 1, 1); err != nil {
		return err
	}
	x.Put(&delivery{message: driver.Message{Topic: x.topic, Body: body, Received: now}})
	return nil
}

func (x *subscription) end(_ int, err error) {
	defer close(x.done)
	select {
	case <-x.ready:
		x.finish(err)
	default:
		x.err = err
		x.finish(nil)
	}
}

// ping is PING, whose answer comes within the subscription.
type ping struct{}

func (ping) encode(b []byte) ([]byte, int) { return appendCommand(b, "PING"), 0 }
func (ping) read(reader, int) error        { return nil }
func (ping) end(int, error)                {}

// Settle has nothing to settle.
func (s *pubsubConsumer) Settle(context.Context, driver.Batch, driver.Outcome) error {
	return errors.ErrUnsupported
}

// Close ends the subscription with its connection.
func (s *pubsubConsumer) Close(ctx context.Context) error {
	if !s.shut() {
		return nil
	}
	return s.link.end(ctx)
}
