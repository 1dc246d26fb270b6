package redis_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// BenchmarkRatio compares this package with pipelined loops written by hand over the client library: the same window,
// the same commands. The two take turns, and the median of the ratios of their turns is reported as "x-of-raw", together
// with the nanoseconds per message of each.
func BenchmarkRatio(b *testing.B) {
	address := os.Getenv("BROKER_URL_REDIS_STREAMS")
	if address == "" {
		b.Skip("no URL for redis-streams")
	}
	for _, window := range []int{50, 1000} {
		b.Run(fmt.Sprintf("publish/window=%d", window), func(b *testing.B) {
			s := newSide(b, address, window)
			compare(b, s.rawPublish, s.publish)
		})
	}
	b.Run("consume/batch=500", func(b *testing.B) {
		s := newSide(b, address, 1000)
		compare(b, s.rawConsume, s.consume)
	})
}

// compare gives each side turns of a fixed number of messages.
func compare(b *testing.B, raw, ours func(b *testing.B, n int) time.Duration) {
	const each, turns = 50_000, 9
	for b.Loop() {
		var ratios, rawNs, ourNs []float64
		for range turns {
			r, o := raw(b, each), ours(b, each)
			ratios = append(ratios, float64(r)/float64(o))
			rawNs = append(rawNs, float64(r)/each)
			ourNs = append(ourNs, float64(o)/each)
		}
		b.ReportMetric(median(ratios), "x-of-raw")
		b.ReportMetric(median(rawNs), "raw-ns/msg")
		b.ReportMetric(median(ourNs), "ns/msg")
	}
	b.ReportMetric(0, "ns/op")
}

func median(x []float64) float64 {
	sort.Float64s(x)
	return x[len(x)/2]
}

type side struct {
	window int
	topic  string
	group  string
	body   []byte
	raw    *redis.Client
	conn   driver.Conn
	// producer fills the stream for both sides of consume.
	producer driver.Producer
}

func newSide(b *testing.B, address string, window int) *side {
	b.Helper()
	ctx := b.Context()
	c := dial(b, address)
	s := &side{window: window, topic: fmt.Sprint("bench-", time.Now().UnixNano()), group: "g", body: bytes.Repeat([]byte("x"), 100), conn: c}
	if !c.(driver.Unwrapper).As(&s.raw) {
		b.Skip("not a single server")
	}
	if err := c.(driver.Admin).CreateTopic(ctx, driver.TopicSpec{Name: s.topic, Partitions: 1, Replicas: 1}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.(driver.Admin).DeleteTopic(context.Background(), s.topic) })
	s.producer = produce(b, c, address, s.topic, window, nil)
	return s
}

func (s *side) purge(b *testing.B) {
	if err := s.conn.(driver.Admin).PurgeTopic(b.Context(), s.topic); err != nil {
		b.Fatal(err)
	}
}

// rawPublish is what a careful user of the library would write: pipelines of a window.
func (s *side) rawPublish(b *testing.B, n int) time.Duration {
	s.purge(b)
	ctx := b.Context()
	conn := s.raw.Conn()
	defer func() { _ = conn.Close() }()
	begin := time.Now()
	for sent := 0; sent < n; sent += s.window {
		pipe := conn.Pipeline()
		for range s.window {
			pipe.Do(ctx, "XADD", s.topic, "NOMKSTREAM", "*", "body", s.body)
		}
		cmds, err := pipe.Exec(ctx)
		if err != nil || len(cmds) != s.window {
			b.Fatal(err)
		}
	}
	return time.Since(begin)
}

// publish sends message by message, as a load generator does, with at most a window outstanding.
func (s *side) publish(b *testing.B, n int) time.Duration {
	s.purge(b)
	return s.send(b, n)
}

func (s *side) send(b *testing.B, n int) time.Duration {
	ctx := b.Context()
	window := make(chan struct{}, s.window)
	var all sync.WaitGroup
	all.Add(n)
	var failed sync.Once
	done := func(_ int, err error) {
		if err != nil {
			failed.Do(func() { b.Error(err) })
		}
		<-window
		all.Done()
	}
	one := driver.Batch{{Body: s.body}}
	begin := time.Now()
	for range n {
		window <- struct{}{}
		s.producer.Send(ctx, one, done)
	}
	all.Wait()
	return time.Since(begin)
}

const consumeBatch = 500

// fill puts n messages into the stream and makes the group, not timed.
func (s *side) fill(b *testing.B, n int) {
	_ = s.raw.XGroupDestroy(b.Context(), s.topic, s.group).Err()
	s.purge(b)
	s.send(b, n)
	if err := s.raw.XGroupCreate(b.Context(), s.topic, s.group, "0").Err(); err != nil {
		b.Fatal(err)
	}
}

func (s *side) rawConsume(b *testing.B, n int) time.Duration {
	s.fill(b, n)
	ctx := b.Context()
	begin := time.Now()
	for got := 0; got < n; {
		streams, err := s.raw.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: s.group, Consumer: "raw", Streams: []string{s.topic, ">"}, Count: consumeBatch, Block: time.Second,
		}).Result()
		if err != nil {
			b.Fatal(err)
		}
		ids := make([]string, 0, consumeBatch)
		for _, m := range streams[0].Messages {
			if len(m.Values["body"].(string)) != len(s.body) {
				b.Fatal("another body")
			}
			ids = append(ids, m.ID)
		}
		if err := s.raw.XAck(ctx, s.topic, s.group, ids...).Err(); err != nil {
			b.Fatal(err)
		}
		got += len(ids)
	}
	return time.Since(begin)
}

func (s *side) consume(b *testing.B, n int) time.Duration {
	s.fill(b, n)
	ctx := b.Context()
	c := consume(b, s.conn, os.Getenv("BROKER_URL_REDIS_STREAMS"), driver.ConsumerConfig{
		Topic: s.topic, Group: s.group, Prefetch: consumeBatch, Start: driver.StartEarliest,
	}, nil)
	batch := make(driver.Batch, consumeBatch)
	begin := time.Now()
	for got := 0; got < n; {
		k, err := c.Receive(ctx, batch)
		if err != nil {
			b.Fatal(err)
		}
		for i := range batch[:k] {
			if len(batch[i].Body) != len(s.body) {
				b.Fatal("another body")
			}
		}
		if err := c.Settle(ctx, batch[:k], driver.Ack); err != nil {
			b.Fatal(err)
		}
		got += k
	}
	d := time.Since(begin)
	if err := c.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	return d
}
