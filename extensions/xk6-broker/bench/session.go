package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Session is one topic of one broker, for loops of its driver and of the engine.
type Session struct {
	tb      testing.TB
	run     *engine.Run
	address *driver.Address
	conn    driver.Conn
	topic   string
	groups  int // groups with a new name so far
}

// Open connects and creates the topic, with options as in a script. The topic is deleted when tb
// ends.
func Open(tb testing.TB, url, topic string, spec driver.TopicSpec, options map[string]any) *Session {
	tb.Helper()
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	s := &Session{tb: tb, run: engine.NewRun("", 0), address: address, topic: topic}
	s.conn = s.open()
	if admin, ok := s.conn.(driver.Admin); ok {
		spec.Name, spec.Partitions, spec.Replicas = topic, max(1, spec.Partitions), max(1, spec.Replicas)
		spec.Options = s.resolve(driver.OnTopic, options)
		if err := admin.CreateTopic(context.Background(), spec); err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = admin.DeleteTopic(context.Background(), topic) })
	}
	return s
}

func (s *Session) open() driver.Conn {
	conn, err := s.address.Open(context.Background(), "bench")
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (s *Session) resolve(scope driver.Scope, options map[string]any) driver.Values {
	values, err := s.address.Resolve(scope, options)
	if err != nil {
		s.tb.Fatal(err)
	}
	return values
}

// Conn returns the session's first connection, for loops by hand on the same client.
func (s *Session) Conn() driver.Conn { return s.conn }

// Purge empties the topic.
func (s *Session) Purge() error {
	return s.conn.(driver.Admin).PurgeTopic(context.Background(), s.topic) //nolint:forcetypeassert // a benchmark
}

func (s *Session) series() *engine.Series {
	labels := engine.Labels{Broker: s.address.String(), Driver: s.address.Driver.Name, Topic: s.topic}
	return s.run.Series(labels)
}

// Sending describes the messages of a loop, sent as fast as the window of unconfirmed ones allows.
type Sending struct {
	Count, Size, Window int
	Workers             int            // concurrent calls of Send, for a driver that waits in them
	Options             map[string]any // of the producer, as in a script
}

// Produce returns a loop of the engine: messages generated, stamped, measured and accounted for.
func (s *Session) Produce(m Sending) Loop {
	s.tb.Helper()
	fill := s.Filler(m)
	return Loop{Name: engineLoop, Run: func() (time.Duration, error) {
		start := time.Now()
		err := fill(m.Count)
		return time.Since(start), err
	}}
}

// Filler returns a function that sends messages through the engine until all are confirmed.
func (s *Session) Filler(m Sending) func(count int) error {
	s.tb.Helper()
	options := s.resolve(driver.OnProducer, m.Options)
	config := driver.ProducerConfig{Topic: s.topic, Window: m.Window, Workers: m.Workers, Options: options}
	pub, err := s.run.NewPublisher(context.Background(), s.open(), s.run.Topic(s.address, s.topic), config)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = s.run.Finish(context.Background(), engine.Drain{Limit: timeout}) })
	senders := []*engine.Sender{pub.NewSender(engine.StampInBody, s.series())}
	return func(count int) error {
		n := uint64(count) //gosec:disable G115 -- a small number of a benchmark
		loop := engine.Produce{Count: n, Payload: payload.Spec{Size: payload.Fixed(m.Size), Random: 1}}
		made, err := loop.Run(context.Background(), senders)
		if err == nil && made.Confirmed != n {
			err = fmt.Errorf("confirmed %d of %d", made.Confirmed, count)
		}
		return err
	}
}

// Receiving describes the messages of a loop, acknowledged by the batch if the broker has acks. The
// clock starts when the consumer is ready.
type Receiving struct {
	Count, Batch int
	// Config has no topic. Its group, if any, gets a new name in every round, so that each round
	// receives everything.
	Config  driver.ConsumerConfig
	Options map[string]any
	// Feed, if it is set, sends meanwhile. received returns how many messages have come so far.
	Feed func(received func() int64) error
}

// timeout bounds how long a loop may take to receive everything.
const timeout = time.Minute

func (s *Session) receiving(r Receiving) driver.ConsumerConfig {
	c := r.Config
	c.Topic, c.Options = s.topic, s.resolve(driver.OnConsumer, r.Options)
	if c.Group != "" {
		s.groups++
		c.Group = fmt.Sprintf("%s-%d", c.Group, s.groups)
	}
	return c
}

// Consume returns a loop of the engine: messages checked, measured and accounted for.
func (s *Session) Consume(r Receiving) Loop {
	s.tb.Helper()
	conn := s.open()
	return Loop{Name: engineLoop, Run: func() (time.Duration, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		series := s.series()
		consumer, err := s.run.NewConsumer(ctx, conn, s.run.Topic(s.address, s.topic), s.receiving(r), series)
		if err != nil {
			return 0, fmt.Errorf("consumer: %w", err)
		}
		n := uint64(r.Count) //gosec:disable G115 -- a small number of a benchmark
		loop, err := engine.Consume{Count: n, Batch: r.Batch}.Resolve(s.address.Driver.Features)
		if err != nil {
			return 0, fmt.Errorf("consume: %w", err)
		}
		fed := make(chan error, 1)
		start := time.Now()
		if r.Feed == nil {
			fed <- nil
		} else {
			before := series.Count(recording.Received)
			go func() { fed <- r.Feed(func() int64 { return series.Count(recording.Received) - before }) }()
		}
		got, err := loop.Run(ctx, []*engine.Consumer{consumer})
		took := time.Since(start)
		if err == nil && (got.Received < n || got.Errors > 0) {
			err = fmt.Errorf("received %d of %d; errors: %d", got.Received, n, got.Errors)
		}
		if err == nil {
			err = <-fed
		}
		return took, errors.Join(err, consumer.Close(ctx))
	}}
}
