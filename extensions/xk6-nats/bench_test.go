package nats

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-nats/internal/raw"
)

// The benchmarks compare the drivers, and the engine on them, with loops written by hand over nats.go: the same window, the same
// bytes. Run them with -benchtime=1x. BROKER_URL_NATS and BROKER_URL_NATS_JETSTREAM choose a server, else it is the embedded
// one, whose CPU time then counts as this process's.
const (
	benchSize   = 100
	benchWindow = 4096
)

func benchURL(env, embedded string) string {
	if url := os.Getenv(env); url != "" {
		return url
	}
	return embedded
}

func benchCore(b *testing.B) (s *bench.Session, nc *nats.Conn, topic string) {
	b.Helper()
	topic = unique("bench")
	s = bench.Open(b, benchURL("BROKER_URL_NATS", "embedded-nats:"), topic, driver.TopicSpec{}, nil)
	return s, client(b, s.Conn()), topic
}

func BenchmarkCorePublish(b *testing.B) {
	const count = 2_000_000
	s, nc, topic := benchCore(b)
	body := make([]byte, benchSize)
	sending := bench.Sending{Count: count, Size: benchSize, Window: benchWindow}
	bench.Case{Name: "nats publish", Messages: count, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.PublishCore(nc, topic, body, count) }},
		s.Produce(sending),
	}}.Compare(b)
}

// Messages come from the engine's own producer in the same process, no faster than they are taken: core NATS would drop them.
func BenchmarkCoreConsume(b *testing.B) {
	const count, chunk, ahead = 500_000, 8192, 32768
	s, nc, topic := benchCore(b)
	fill := s.Filler(bench.Sending{Size: benchSize, Window: benchWindow})
	feed := func(received func() int64) error {
		for sent := 0; sent < count; {
			if int64(sent)-received() > ahead {
				time.Sleep(50 * time.Microsecond)
				continue
			}
			n := min(chunk, count-sent)
			if err := fill(n); err != nil {
				return err
			}
			sent += n
		}
		return nil
	}
	receiving := bench.Receiving{
		Count: count, Batch: 100, Feed: feed, Config: driver.ConsumerConfig{Prefetch: 1000, Start: driver.StartNew},
	}
	bench.Case{Name: "nats consume", Messages: count, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			var received atomic.Int64
			fed := make(chan error, 1)
			took, err := raw.ConsumeCore(nc, topic, count, func() { go func() { fed <- feed(received.Load) }() }, func() { received.Add(1) })
			if err == nil {
				err = <-fed
			}
			return took, err
		}},
		s.Consume(receiving),
	}}.Compare(b)
}

func benchStream(b *testing.B) (s *bench.Session, nc *nats.Conn, topic string) {
	b.Helper()
	topic = unique("bench")
	s = bench.Open(b, benchURL("BROKER_URL_NATS_JETSTREAM", "embedded:"), topic, driver.TopicSpec{}, map[string]any{"storage": "memory"})
	return s, client(b, s.Conn()), topic
}

func BenchmarkStreamPublish(b *testing.B) {
	const count = 150_000
	s, nc, topic := benchStream(b)
	body := make([]byte, benchSize)
	sending := bench.Sending{Count: count, Size: benchSize, Window: benchWindow}
	bench.Case{Name: "nats-jetstream publish", Messages: count, Before: s.Purge, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.PublishStream(nc, topic, body, count, benchWindow) }},
		s.Produce(sending),
	}}.Compare(b)
}

// There are two ways to consume by hand: Fetch and Ack, which is the measure, and the callback of a continuous pull.
func BenchmarkStreamConsume(b *testing.B) {
	const count, batch = 100_000, 500
	s, nc, topic := benchStream(b)
	if err := s.Filler(bench.Sending{Size: benchSize, Window: benchWindow})(count); err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	js := must[jetstream.JetStream](b)(jetstream.New(nc))
	stream := must[string](b)(js.StreamNameBySubject(ctx, topic))
	byHand := func(name string, consume func(jetstream.Consumer) (time.Duration, error)) bench.Loop {
		return bench.Loop{Name: name, Run: func() (time.Duration, error) {
			consumer, err := js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
				AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 10 * batch, FilterSubject: topic,
			})
			if err != nil {
				return 0, err
			}
			took, err := consume(consumer)
			if err == nil {
				err = js.DeleteConsumer(ctx, stream, consumer.CachedInfo().Name)
			}
			return took, err
		}}
	}
	receiving := bench.Receiving{
		Count: count, Batch: batch, Config: driver.ConsumerConfig{Group: "bench", Prefetch: batch, Start: driver.StartEarliest},
	}
	bench.Case{Name: "nats-jetstream consume, batch ack", Messages: count, Loops: []bench.Loop{
		byHand("raw", func(c jetstream.Consumer) (time.Duration, error) { return raw.FetchStream(ctx, c, count, batch) }),
		byHand("raw callback", func(c jetstream.Consumer) (time.Duration, error) { return raw.ConsumeStream(c, count, batch) }),
		s.Consume(receiving),
	}}.Compare(b)
}
