package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-postgres/internal/raw"
)

// The benchmarks compare the driver, and the engine on it, with loops written by hand over pgx, and with pgbench: the same server, table, size of messages and
// number of messages for each transaction. Run them with -benchtime=1x. BROKER_URL_POSTGRES names the server, and BENCH_PGBENCH the program, else it is looked
// for on PATH.
const benchSize = 100

func benchSession(b *testing.B) (s *bench.Session, client *pgx.Conn, table pgx.Identifier) {
	b.Helper()
	url := os.Getenv("BROKER_URL_POSTGRES")
	if url == "" {
		b.Skip("no BROKER_URL_POSTGRES")
	}
	topic := fmt.Sprint("bench-", time.Now().UnixNano())
	s = bench.Open(b, url, topic, driver.TopicSpec{}, nil)
	var config *pgx.ConnConfig
	if u, ok := s.Conn().(driver.Unwrapper); !ok || !u.As(&config) {
		b.Fatal("no configuration")
	}
	client, err := pgx.ConnectConfig(context.Background(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close(context.Background()) })
	return s, client, pgx.Identifier{"public", topic}
}

func BenchmarkPublish(b *testing.B) {
	for _, window := range []int{50, 1000} {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) {
			const count = 50_000
			s, client, table := benchSession(b)
			body := bytes.Repeat([]byte("x"), benchSize)
			sending := bench.Sending{Count: count, Size: benchSize, Window: window}
			loops := []bench.Loop{
				{Name: "raw", Run: func() (time.Duration, error) { return raw.Insert(client, table.Sanitize(), body, count, window) }},
				{Name: "raw copy", Run: func() (time.Duration, error) { return raw.Copy(client, table, body, count, window) }},
				s.Produce(sending),
			}
			if tool, ok := newPgbench(b, client, table); ok {
				loops = append(loops, tool.insert(count, window, body))
			}
			bench.Case{Name: fmt.Sprintf("postgres publish, window %d", window), Messages: count, Before: s.Purge, Loops: loops}.Compare(b)
		})
	}
}

func BenchmarkConsume(b *testing.B) {
	const count, batch = 50_000, 500
	s, client, table := benchSession(b)
	fill := s.Filler(bench.Sending{Size: benchSize, Window: 1000})
	receiving := bench.Receiving{Count: count, Batch: batch, Config: driver.ConsumerConfig{Prefetch: 2 * batch, Start: driver.StartEarliest}}
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Consume(client, table.Sanitize(), count, batch) }},
		s.Consume(receiving),
	}
	if tool, ok := newPgbench(b, client, table); ok {
		loops = append(loops, tool.consume(count, batch))
	}
	bench.Case{Name: "postgres consume, batch ack", Messages: count, Before: func() error {
		if err := s.Purge(); err != nil {
			return err
		}
		return fill(count)
	}, Loops: loops}.Compare(b)
}
