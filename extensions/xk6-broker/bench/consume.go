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

// Receiving is what is to be received, and acknowledged a batch at a time where the broker knows acks. The clock starts when
// the consumer is ready.
type Receiving struct {
	Count, Batch int
	// Config is without a topic. A group that it names gets a new name in every round, so that each receives everything.
	Config  driver.ConsumerConfig
	Options map[string]any
	// Feed, where there is one, sends while the consumer is there. received returns how many messages have come so far.
	Feed func(received func() int64) error
}

// patience is how long a loop may take to receive everything.
const patience = time.Minute

func (s *Session) receiving(r Receiving) driver.ConsumerConfig {
	c := r.Config
	c.Topic, c.Options = s.topic, s.resolve(driver.OnConsumer, r.Options)
	if c.Group != "" {
		s.groups++
		c.Group = fmt.Sprintf("%s-%d", c.Group, s.groups)
	}
	return c
}

// feed starts what is sent meanwhile, and gives what waits for its end.
func (r Receiving) feed(received func() int64) (ended func() error) {
	if r.Feed == nil {
		return func() error { return nil }
	}
	failed := make(chan error, 1)
	go func() { failed <- r.Feed(received) }()
	return func() error { return <-failed }
}

// Receive is a loop over the driver alone, which tells what of the engine's cost is the driver's.
func (s *Session) Receive(r Receiving) Loop {
	s.tb.Helper()
	conn := s.open()
	acks := s.address.Driver.Features.Settle.Has(driver.Ack)
	return Loop{Name: "driver", Run: func() (time.Duration, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		consumer, err := conn.NewConsumer(ctx, s.receiving(r))
		if err != nil {
			return 0, fmt.Errorf("consumer: %w", err)
		}
		batch := make(driver.Batch, r.Batch)
		var got atomic.Int64
		start := time.Now()
		fed := r.feed(got.Load)
		for got.Load() < int64(r.Count) {
			n, err := consumer.Receive(ctx, batch)
			if err == nil && acks {
				err = consumer.Settle(ctx, batch[:n], driver.Ack)
			}
			if err != nil {
				return 0, fmt.Errorf("after %d messages: %w", got.Load(), err)
			}
			got.Add(int64(n))
		}
		took := time.Since(start)
		return took, errors.Join(fed(), consumer.Close(ctx))
	}}
}

// Consume is a loop of the engine: messages checked, measured and accounted for.
func (s *Session) Consume(r Receiving) Loop {
	s.tb.Helper()
	conn := s.open()
	return Loop{Name: engineLoop, Run: func() (time.Duration, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		series := s.series()
		consumer, err := s.run.NewConsumer(ctx, conn, s.run.Topic(s.address, s.topic), s.receiving(r), series)
		if err != nil {
			return 0, fmt.Errorf("consumer: %w", err)
		}
		loop, err := engine.Consume{Count: uint64(r.Count), Batch: r.Batch}.Resolve(s.address.Driver.Features) //gosec:disable G115 -- a number of a test, and small
		if err != nil {
			return 0, fmt.Errorf("consume: %w", err)
		}
		had := series.Count(recording.Received)
		latencies := func() uint64 {
			return series.Trend(recording.Open, recording.E2ELatency).Count() + series.Trend(recording.Closed, recording.E2ELatency).Count()
		}
		fresh := latencies()
		start := time.Now()
		fed := r.feed(func() int64 { return series.Count(recording.Received) - had })
		got, err := loop.Run(ctx, []*engine.Consumer{consumer})
		took := time.Since(start)
		if err = errors.Join(err, fed(), consumer.Close(ctx)); err != nil {
			return 0, err
		}
		measured := latencies() - fresh
		if got.Received < uint64(r.Count) || measured < uint64(r.Count) || got.Errors > 0 { //gosec:disable G115 -- a number of a test, and small
			return 0, fmt.Errorf("received %d of %d, measured %d of them; errors: %d", got.Received, r.Count, measured, got.Errors)
		}
		return took, nil
	}}
}
