package nats

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-nats/internal/raw"
)

// The engine against hand-written loops of nats.go: same window, same bodies.

func BenchmarkEngineCorePublish(b *testing.B) {
	const count = 1_000_000
	s := bench.Open(b, benchURL("BROKER_URL_NATS", "embedded-nats:"), "engine.core", driver.TopicSpec{}, nil)
	nc := client(b, s.Conn())
	body := make([]byte, benchBody)
	bench.Compare(b, "nats publish", count,
		bench.Loop{Name: "raw", Run: func() (time.Duration, error) { return raw.PublishCore(nc, "engine.core", body, count) }},
		s.Produce(count, benchBody, benchWindow, nil))
}

func BenchmarkEngineStreamPublish(b *testing.B) {
	const count = 200_000
	s := bench.Open(b, benchURL("BROKER_URL_NATS_JETSTREAM", "embedded:"), "engine-stream", driver.TopicSpec{}, map[string]any{"storage": "memory"})
	nc := client(b, s.Conn())
	body := make([]byte, benchBody)
	bench.Compare(b, "nats-jetstream publish", count,
		bench.Loop{Name: "raw", Run: func() (time.Duration, error) {
			return raw.PublishStream(nc, "engine-stream", body, count, benchWindow)
		}},
		s.Produce(count, benchBody, benchWindow, nil))
}

func BenchmarkEngineStreamConsume(b *testing.B) {
	const count, batch = 100_000, 500
	s := bench.Open(b, benchURL("BROKER_URL_NATS_JETSTREAM", "embedded:"), "engine-consume", driver.TopicSpec{}, map[string]any{"storage": "memory"})
	nc := client(b, s.Conn())
	ctx := context.Background()
	if _, err := raw.PublishStream(nc, "engine-consume", make([]byte, benchBody), count, benchWindow); err != nil {
		b.Fatal(err)
	}
	js := must[jetstream.JetStream](b)(jetstream.New(nc))
	names := js.StreamNames(ctx)
	stream := <-names.Name()
	for name := range names.Name() {
		if name == "engine-consume" {
			stream = name
		}
	}
	bench.Compare(b, "nats-jetstream consume, batch ack", count,
		bench.Loop{Name: "raw", Run: func() (time.Duration, error) {
			consumer, err := js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
				AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 10 * batch, FilterSubject: "engine-consume",
			})
			if err != nil {
				return 0, err
			}
			return raw.FetchStream(ctx, consumer, count, batch)
		}},
		s.Consume(count, batch, driver.ConsumerConfig{Start: driver.StartEarliest, Prefetch: batch}, nil, func() error { return nil }))
}
