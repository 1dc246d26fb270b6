package amqp1_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-amqp1/internal/raw"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The benchmarks compare the driver, and the engine on it, with loops written by hand over go-amqp: the same broker, queue, size of messages and credit.
// Run them with -benchtime=1x. BROKER_URL_AMQP1 names the broker.
const (
	benchMessages = 30_000
	benchSize     = 100
	benchWindow   = 1000
)

func benchSession(b *testing.B) (s *bench.Session, client *amqp.Conn, topic string) {
	b.Helper()
	url := os.Getenv("BROKER_URL_AMQP1")
	if url == "" {
		b.Skip("no BROKER_URL_AMQP1")
	}
	topic = fmt.Sprintf("bench-%012x", rand.Uint64()>>16)
	s = bench.Open(b, url, topic, driver.TopicSpec{}, nil)
	if u, ok := s.Conn().(driver.Unwrapper); !ok || !u.As(&client) {
		b.Fatal("no client")
	}
	return s, client, topic
}

func BenchmarkPublish(b *testing.B) {
	s, client, topic := benchSession(b)
	body := bytes.Repeat([]byte("x"), benchSize)
	sending := bench.Sending{Count: benchMessages, Size: benchSize, Window: benchWindow}
	bench.Case{Name: "amqp1 produce, durable", Messages: benchMessages, Before: s.Purge, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Produce(client, topic, body, benchMessages, benchWindow) }},
		s.Send(sending), s.Produce(sending),
	}}.Compare(b)
}

func BenchmarkConsume(b *testing.B) {
	s, client, topic := benchSession(b)
	fill := s.Filler(bench.Sending{Size: benchSize, Window: benchWindow})
	receiving := bench.Receiving{Count: benchMessages, Batch: 500, Config: driver.ConsumerConfig{Prefetch: benchWindow, Start: driver.StartEarliest}}
	bench.Case{Name: "amqp1 consume, each accepted", Messages: benchMessages, Before: func() error {
		if err := s.Purge(); err != nil {
			return err
		}
		return fill(benchMessages)
	}, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Consume(client, topic, benchMessages, benchWindow) }},
		s.Receive(receiving), s.Consume(receiving),
	}}.Compare(b)
}
