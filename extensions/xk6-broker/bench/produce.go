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

// Sending is what is to be sent: as many messages of some size, as fast as a window of unconfirmed ones lets.
type Sending struct {
	Count, Size, Window int
	Workers             int            // how many calls of Send there may be at a time, of a driver that waits in them for the broker
	Options             map[string]any // as a script would give them to the producer
}

// handOver is how many messages the driver's loop hands over in one call, as the engine does.
const handOver = 64

// Send is a loop over the driver alone, which tells what of the engine's cost is the driver's.
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
	return Loop{Name: "driver", Run: func() (time.Duration, error) {
		places, hand := make(chan struct{}, m.Window/len(batch)), func(send func()) { send() }
		if m.Workers > 0 {
			places, hand = make(chan struct{}, min(cap(places), m.Workers)), func(send func()) { go send() }
		}
		var failure atomic.Pointer[error]
		start := time.Now()
		for sent := 0; sent < m.Count; {
			places <- struct{}{}
			n := min(len(batch), m.Count-sent)
			sent += n
			var left atomic.Int64
			left.Store(int64(n))
			hand(func() {
				producer.Send(context.Background(), batch[:n], func(_ int, err error) {
					if err != nil {
						failure.Store(&err)
					}
					if left.Add(-1) == 0 {
						<-places
					}
				})
			})
		}
		for range cap(places) { // all of them free: nothing is on its way
			places <- struct{}{}
		}
		took := time.Since(start)
		if err := failure.Load(); err != nil {
			return 0, *err
		}
		return took, nil
	}}
}

func (s *Session) sending(m Sending) driver.ProducerConfig {
	s.tb.Helper()
	return driver.ProducerConfig{Topic: s.topic, Window: m.Window, Workers: m.Workers, Options: s.resolve(driver.OnProducer, m.Options)}
}

// Produce is a loop of the engine: generated messages, stamped, measured and accounted for.
func (s *Session) Produce(m Sending) Loop {
	s.tb.Helper()
	fill := s.Filler(m)
	return Loop{Name: engineLoop, Run: func() (time.Duration, error) {
		start := time.Now()
		err := fill(m.Count)
		return time.Since(start), err
	}}
}

// Filler gives a function that sends any number of messages through the engine and returns when they are confirmed.
func (s *Session) Filler(m Sending) func(count int) error {
	s.tb.Helper()
	pub, err := s.run.NewPublisher(context.Background(), s.open(), s.run.Topic(s.address, s.topic), s.sending(m))
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = s.run.Finish(context.Background(), engine.Drain{Limit: patience}) })
	sender := pub.NewSender(engine.StampInBody, s.series())
	return func(count int) error {
		made, err := engine.Produce{Count: uint64(count), Payload: payload.Spec{Size: payload.Fixed(m.Size), Random: 1}}. //gosec:disable G115 -- a number of a test, and small
																	Run(context.Background(), []*engine.Sender{sender})
		if err == nil && made.Confirmed != uint64(count) { //gosec:disable G115 -- a number of a test, and small
			err = fmt.Errorf("confirmed %d of %d", made.Confirmed, count)
		}
		return err
	}
}
