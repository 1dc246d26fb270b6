package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// Session is the engine on one topic of one broker.
type Session struct {
	tb      testing.TB
	run     *load.Run
	address *driver.Address
	conn    driver.Conn
	topic   string
}

// Open connects and creates the topic, with options as a script would give them.
func Open(tb testing.TB, url, topic string, spec driver.TopicSpec, options map[string]any) *Session {
	tb.Helper()
	address, err := driver.ParseURL(url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	s := &Session{tb: tb, run: load.NewRun(""), address: address, topic: topic}
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
	s.tb.Helper()
	conn, err := s.address.Open(context.Background(), "bench")
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (s *Session) resolve(scope driver.Scope, options map[string]any) driver.Values {
	s.tb.Helper()
	values, err := s.address.Resolve(scope, options)
	if err != nil {
		s.tb.Fatal(err)
	}
	return values
}

// Conn is the session's first connection, for raw loops that want the same client.
func (s *Session) Conn() driver.Conn { return s.conn }

func (s *Session) series() *load.Series {
	return s.run.Series(load.Labels{Broker: s.address.String(), Driver: s.address.Driver.Name, Topic: s.topic})
}

// Produce is a loop of the engine: count generated messages of some size, as fast as the window lets.
func (s *Session) Produce(count, size, window int, options map[string]any) Loop {
	s.tb.Helper()
	config := driver.ProducerConfig{Topic: s.topic, Window: window, Options: s.resolve(driver.OnProducer, options)}
	pub, err := s.run.NewPublisher(context.Background(), s.open(), s.run.Topic(s.address, s.topic), config)
	if err != nil {
		s.tb.Fatal(err)
	}
	return Loop{Name: "engine", Run: func() (time.Duration, error) {
		sender := pub.NewSender(load.StampInBody, s.series())
		start := time.Now()
		made, err := load.Produce{Count: uint64(count), Payload: load.Payload{Size: size, Random: 1}}.
			Run(context.Background(), []*load.Sender{sender})
		took := time.Since(start)
		if err == nil && made.Confirmed != uint64(count) {
			err = fmt.Errorf("confirmed %d of %d", made.Confirmed, count)
		}
		return took, err
	}}
}

// Consume is a loop of the engine: count messages, which fill sends once the consumer is ready, acknowledged a batch at a time.
func (s *Session) Consume(count, batch int, c driver.ConsumerConfig, options map[string]any, fill func() error) Loop {
	s.tb.Helper()
	c.Topic, c.Options = s.topic, s.resolve(driver.OnConsumer, options)
	conn := s.open()
	return Loop{Name: "engine", Run: func() (time.Duration, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		consumer, err := s.run.NewConsumer(ctx, conn, s.run.Topic(s.address, s.topic), c, s.series())
		if err != nil {
			return 0, fmt.Errorf("consumer: %w", err)
		}
		loop, err := load.Consume{Count: uint64(count), Batch: batch}.Resolve(s.address.Driver.Features)
		if err != nil {
			return 0, fmt.Errorf("consume: %w", err)
		}
		var filling sync.WaitGroup
		var fillErr error
		start := time.Now()
		filling.Go(func() { fillErr = fill() })
		got, err := loop.Run(ctx, []*load.Consumer{consumer})
		took := time.Since(start)
		filling.Wait()
		switch {
		case err != nil:
			return 0, fmt.Errorf("consume: %w", err)
		case fillErr != nil:
			return 0, fillErr
		case got.Received < uint64(count):
			return 0, fmt.Errorf("received %d of %d", got.Received, count)
		}
		return took, consumer.Close(ctx)
	}}
}
