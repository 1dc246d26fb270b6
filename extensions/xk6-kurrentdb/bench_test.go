package kurrentdb

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/double"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-kurrentdb/internal/raw"
)

// The benchmarks compare the driver, and the engine on it, with loops written by hand over the same stubs: the same server, topic, size of messages, messages of an
// append and prefetch. Run them with -benchtime=1x. BROKER_URL_KURRENTDB names the server; without it they run on the double, in this process: that
// compares the loops with one another, and says nothing of what a KurrentDB does.
const (
	benchMessages = 20_000
	benchSize     = 100
	benchBatch    = 64
	benchPrefetch = 1000
)

func benchSession(b *testing.B) (s *bench.Session, c *conn, topic string) {
	b.Helper()
	url := os.Getenv("BROKER_URL_KURRENTDB")
	if url == "" {
		url = start(b, double.Config{}).url
	}
	topic = fmt.Sprint("bench-", time.Now().UnixNano())
	s = bench.Open(b, url, topic, driver.TopicSpec{}, nil)
	return s, s.Conn().(*conn), topic
}

func BenchmarkPublish(b *testing.B) {
	s, c, topic := benchSession(b)
	sending := bench.Sending{Count: benchMessages, Size: benchSize, Window: 4 * benchBatch, Options: map[string]any{"batch": benchBatch}}
	bench.Case{Name: "kurrentdb produce, 64 messages of an append", Messages: benchMessages, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			return raw.Append(c.channel, topic, bytes.Repeat([]byte("x"), benchSize), benchMessages, benchBatch)
		}},
		s.Produce(sending),
	}}.Compare(b)
}

func BenchmarkConsume(b *testing.B) {
	s, c, topic := benchSession(b)
	if err := s.Filler(bench.Sending{Size: benchSize, Window: benchPrefetch})(benchMessages); err != nil {
		b.Fatal(err)
	}
	receiving := bench.Receiving{
		Count: benchMessages, Batch: benchBatch,
		Config: driver.ConsumerConfig{Group: "ours", Prefetch: benchPrefetch, Start: driver.StartEarliest},
	}
	groups := 0
	bench.Case{Name: "kurrentdb consume, prefetch 1000", Messages: benchMessages, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			groups++
			group := fmt.Sprint("raw", groups)
			d, err := driver.Lookup("kurrentdb")
			if err != nil {
				return 0, err
			}
			values, err := d.Resolve(driver.OnConsumer, driver.Latency, nil)
			if err != nil {
				return 0, err
			}
			if err := c.createGroup(context.Background(), topic, group, settings(values), starting(driver.StartEarliest)); err != nil {
				return 0, err
			}
			return raw.Consume(c.channel, topic, group, benchMessages, benchBatch, benchPrefetch)
		}},
		s.Consume(receiving),
	}}.Compare(b)
}
