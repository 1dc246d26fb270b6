package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
)

// Sending describes the messages of a loop, sent as fast as the window of unconfirmed ones allows.
type Sending struct {
	Count, Size, Window int
	Workers             int            // concurrent calls of Send, for a driver that waits in them
	Options             map[string]any // of the producer, as in a script
}

// handOver is how many messages one call of Send gets, as in the engine.
const handOver = 64

func (s *Session) sending(m Sending) driver.ProducerConfig {
	options := s.resolve(driver.OnProducer, m.Options)
	return driver.ProducerConfig{Topic: s.topic, Window: m.Window, Workers: m.Workers, Options: options}
}

// Send returns a loop of the driver alone.
func (s *Session) Send(m Sending) Loop {
	s.tb.Helper()
	producer, err := s.open().NewProducer(context.Background(), s.sending(m))
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = producer.Close(context.Background()) })
	batch := make(driver.Batch, min(handOver, m.Window))
	for i := range batch {
		batch[i].Body = make([]byte, m.Size)
	}
	slots := m.Window / len(batch)
	if m.Workers > 0 {
		slots = min(slots, m.Workers)
	}
	return Loop{Name: "driver", Run: func() (time.Duration, error) {
		free := make(chan struct{}, slots)
		var failure atomic.Pointer[error]
		start := time.Now()
		for sent := 0; sent < m.Count; {
			n := min(len(batch), m.Count-sent)
			sent += n
			free <- struct{}{}
			var left atomic.Int64
			left.Store(int64(n))
			send := func() {
				producer.Send(context.Background(), batch[:n], func(_ int, err error) {
					if err != nil {
						failure.Store(&err)
					}
					if left.Add(-1) == 0 {
						<-free
					}
				})
			}
			if m.Workers > 0 {
				go send()
			} else {
				send()
			}
		}
		for range slots { // until no message is outstanding
			free <- struct{}{}
		}
		took := time.Since(start)
		if err := failure.Load(); err != nil {
			return 0, *err
		}
		return took, nil
	}}
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
	pub, err := s.run.NewPublisher(context.Background(), s.open(), s.run.Topic(s.address, s.topic), s.sending(m))
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
