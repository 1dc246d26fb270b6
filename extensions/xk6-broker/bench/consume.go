package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

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

// timed returns how long receive takes while Feed sends.
func (r Receiving) timed(received func() int64, receive func() error) (time.Duration, error) {
	fed := make(chan error, 1)
	start := time.Now()
	go func() {
		var err error
		if r.Feed != nil {
			err = r.Feed(received)
		}
		fed <- err
	}()
	err := receive()
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	return took, <-fed
}

// Receive returns a loop of the driver alone.
func (s *Session) Receive(r Receiving) Loop {
	s.tb.Helper()
	conn := s.open()
	acks := s.address.Driver.Features.Settle.Has(driver.Ack)
	return Loop{Name: "driver", Run: func() (time.Duration, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		consumer, err := conn.NewConsumer(ctx, s.receiving(r))
		if err != nil {
			return 0, fmt.Errorf("consumer: %w", err)
		}
		batch := make(driver.Batch, r.Batch)
		var got atomic.Int64
		took, err := r.timed(got.Load, func() error {
			for got.Load() < int64(r.Count) {
				n, err := consumer.Receive(ctx, batch)
				if err == nil && acks {
					err = consumer.Settle(ctx, batch[:n], driver.Ack)
				}
				if err != nil {
					return fmt.Errorf("after %d messages: %w", got.Load(), err)
				}
				got.Add(int64(n))
			}
			return nil
		})
		return took, errors.Join(err, consumer.Close(ctx))
	}}
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
		before := series.Count(recording.Received)
		received := func() int64 { return series.Count(recording.Received) - before }
		took, err := r.timed(received, func() error {
			got, err := loop.Run(ctx, []*engine.Consumer{consumer})
			if err == nil && (got.Received < n || got.Errors > 0) {
				err = fmt.Errorf("received %d of %d; errors: %d", got.Received, n, got.Errors)
			}
			return err
		})
		return took, errors.Join(err, consumer.Close(ctx))
	}}
}
