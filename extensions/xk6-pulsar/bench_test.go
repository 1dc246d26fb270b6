package pulsar

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-pulsar/internal/raw"
)

// The benchmarks compare the driver, and the engine on it, with loops written by hand over pulsar-client-go: the same broker, topic, size of
// messages and guarantee. Run them with -benchtime=1x. BROKER_URL_PULSAR names the broker.
const (
	benchMessages = 100_000
	benchSize     = 100
	benchWindow   = 10_000
	benchBatch    = 1000
)

// sameAsRaw are the settings of the hand-written loop.
var sameAsRaw = map[string]any{"batching": "default", "batchDelay": "1ms"}

func benchSession(b *testing.B) (s *bench.Session, client pulsar.Client, topic string) {
	b.Helper()
	url := os.Getenv("BROKER_URL_PULSAR")
	if url == "" {
		b.Skip("no BROKER_URL_PULSAR")
	}
	_, hosts, _ := strings.Cut(url, "://")
	hosts, _, _ = strings.Cut(hosts, "?")
	topic = fmt.Sprintf("bench-%012x", rand.Uint64()>>16)
	s = bench.Open(b, url, topic, driver.TopicSpec{Partitions: 1}, nil)
	client, err := raw.Client(hosts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	return s, client, topic
}

func BenchmarkPublish(b *testing.B) {
	s, client, topic := benchSession(b)
	body := bytes.Repeat([]byte("x"), benchSize)
	sending := bench.Sending{Count: benchMessages, Size: benchSize, Window: benchWindow, Options: sameAsRaw}
	bench.Case{Name: "pulsar produce, batches of 1 ms", Messages: benchMessages, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Produce(client, topic, body, benchMessages, benchWindow) }},
		s.Send(sending), s.Produce(sending),
	}}.Compare(b)
}

func BenchmarkConsume(b *testing.B) {
	s, client, topic := benchSession(b)
	if err := s.Filler(bench.Sending{Size: benchSize, Window: benchWindow, Options: sameAsRaw})(benchMessages); err != nil {
		b.Fatal(err)
	}
	groups := 0
	group := func(of string) string { groups++; return fmt.Sprintf("%s-%s-%d", topic, of, groups) }
	receiving := bench.Receiving{
		Count: benchMessages, Batch: benchBatch, Options: map[string]any{"ackDelay": "5ms"},
		Config: driver.ConsumerConfig{Group: group("ours"), Prefetch: benchBatch, Start: driver.StartEarliest},
	}
	bench.Case{Name: "pulsar consume, shared, acks of 5 ms", Messages: benchMessages, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			return raw.Consume(client, topic, group("raw"), benchMessages, benchBatch)
		}},
		s.Receive(receiving), s.Consume(receiving),
	}}.Compare(b)
}
