// Package raw has loops written by hand over nats.go, to compare the drivers with. Every loop
// returns its duration.
package raw

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// PublishCore publishes count messages, and ends when the server has read them.
func PublishCore(nc *nats.Conn, subject string, body []byte, count int) (time.Duration, error) {
	start := time.Now()
	for range count {
		if err := nc.Publish(subject, body); err != nil {
			return 0, fmt.Errorf("publish: %w", err)
		}
	}
	err := nc.Flush()
	return time.Since(start), err
}

// PublishStream publishes count messages asynchronously, with window of them unconfirmed, until all
// are confirmed.
func PublishStream(nc *nats.Conn, subject string, body []byte, count, window int) (time.Duration, error) {
	var acked atomic.Int64
	var failure atomic.Pointer[error]
	finished := make(chan struct{})
	one := func() {
		if acked.Add(1) == int64(count) {
			close(finished)
		}
	}
	js, err := jetstream.New(nc,
		jetstream.WithPublishAsyncMaxPending(window),
		jetstream.WithPublishAsyncAckHandler(func(jetstream.JetStream, *nats.Msg, *jetstream.PubAck) { one() }),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) {
			failure.Store(&err)
			one()
		}))
	if err != nil {
		return 0, fmt.Errorf("jetstream: %w", err)
	}
	defer js.CleanupPublisher()
	start := time.Now()
	for range count {
		_, err := js.PublishAsync(subject, body)
		for errors.Is(err, jetstream.ErrTooManyStalledMsgs) {
			_, err = js.PublishAsync(subject, body)
		}
		if err != nil {
			return 0, fmt.Errorf("publish: %w", err)
		}
	}
	<-finished
	took := time.Since(start)
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return took, nil
}

// ConsumeCore receives count messages in nats.go's callback, and calls received for each. It calls
// ready when it is subscribed.
func ConsumeCore(nc *nats.Conn, subject string, count int, ready, received func()) (time.Duration, error) {
	finished := make(chan struct{})
	got := 0
	sub, err := nc.Subscribe(subject, func(*nats.Msg) {
		received()
		if got++; got == count {
			close(finished)
		}
	})
	if err != nil {
		return 0, fmt.Errorf("subscribe: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.Flush(); err != nil {
		return 0, fmt.Errorf("flush: %w", err)
	}
	start := time.Now()
	ready()
	<-finished
	return time.Since(start), nil
}

// FetchStream receives and acknowledges count messages, a batch at a time.
func FetchStream(ctx context.Context, consumer jetstream.Consumer, count, batch int) (time.Duration, error) {
	start := time.Now()
	for got := 0; got < count; {
		messages, err := consumer.Fetch(min(batch, count-got), jetstream.FetchContext(ctx))
		if err != nil {
			return 0, fmt.Errorf("fetch: %w", err)
		}
		for m := range messages.Messages() {
			if err := m.Ack(); err != nil {
				return 0, fmt.Errorf("ack: %w", err)
			}
			got++
		}
		if err := messages.Error(); err != nil {
			return 0, fmt.Errorf("fetch: %w", err)
		}
	}
	return time.Since(start), nil
}

// ConsumeStream receives and acknowledges count messages in the callback of nats.go's continuous
// pull.
func ConsumeStream(consumer jetstream.Consumer, count, prefetch int) (time.Duration, error) {
	finished := make(chan error, 1)
	got := 0
	start := time.Now()
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		if err := m.Ack(); err != nil {
			finished <- err
			return
		}
		if got++; got == count {
			finished <- nil
		}
	}, jetstream.PullMaxMessages(prefetch))
	if err != nil {
		return 0, fmt.Errorf("consume: %w", err)
	}
	defer consuming.Stop()
	err = <-finished
	return time.Since(start), err
}
