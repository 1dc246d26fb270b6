// Package raw has loops written by hand with pulsar-client-go, which move messages as fast as it
// can: the measure for the drivers. Every loop returns the time for its messages.
package raw

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"
)

// Client is a client that writes no log.
func Client(host string) (pulsar.Client, error) {
	c, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: "pulsar://" + host, Logger: log.DefaultNopLogger(),
		MetricsRegisterer: prometheus.NewRegistry(), MemoryLimitBytes: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return c, nil
}

// Produce sends count messages, with up to window unconfirmed, in batches of up to a millisecond,
// and returns when all are confirmed.
func Produce(c pulsar.Client, topic string, body []byte, count, window int) (time.Duration, error) {
	p, err := c.CreateProducer(pulsar.ProducerOptions{
		Topic: topic, MaxPendingMessages: window, BatchingMaxPublishDelay: time.Millisecond,
	})
	if err != nil {
		return 0, fmt.Errorf("producer: %w", err)
	}
	defer p.Close()
	ctx := context.Background()
	var unconfirmed sync.WaitGroup
	var failure atomic.Pointer[error]
	unconfirmed.Add(count)
	start := time.Now()
	for range count {
		p.SendAsync(ctx, &pulsar.ProducerMessage{Payload: body},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				if err != nil {
					failure.Store(&err)
				}
				unconfirmed.Done()
			})
	}
	unconfirmed.Wait()
	took := time.Since(start)
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return took, nil
}

// Consume receives count messages as the only consumer of a shared subscription, and acks each, in
// groups of up to 5 ms. Without each, the broker gets a batch's ack when the whole batch is acked.
func Consume(c pulsar.Client, topic, subscription string, count, queue int, each bool) (time.Duration, error) {
	r, err := c.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: subscription, Type: pulsar.Shared, ReceiverQueueSize: queue,
		SubscriptionInitialPosition:    pulsar.SubscriptionPositionEarliest,
		AckGroupingOptions:             &pulsar.AckGroupingOptions{MaxSize: 1000, MaxTime: 5 * time.Millisecond},
		EnableBatchIndexAcknowledgment: each,
	})
	if err != nil {
		return 0, fmt.Errorf("consumer: %w", err)
	}
	defer r.Close()
	ctx := context.Background()
	start := time.Now()
	for range count {
		m, err := r.Receive(ctx)
		if err != nil {
			return 0, fmt.Errorf("receive: %w", err)
		}
		if err := r.Ack(m); err != nil {
			return 0, fmt.Errorf("ack: %w", err)
		}
	}
	return time.Since(start), nil
}
