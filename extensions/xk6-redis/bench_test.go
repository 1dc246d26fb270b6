package redis_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-redis/internal/raw"
)

// The benchmarks compare the streams' driver, and the engine on it, with pipelined loops written by hand over go-redis and with
// redis-benchmark: the same server, commands, size of messages and window. Run them with -benchtime=1x.
// BROKER_URL_REDIS_STREAMS names the server, and BENCH_REDIS_BENCHMARK the program, else it is looked for on PATH.
const benchSize = 100

func benchSession(b *testing.B) (s *bench.Session, client *redis.Client, stream string) {
	b.Helper()
	url := os.Getenv("BROKER_URL_REDIS_STREAMS")
	if url == "" {
		b.Skip("no BROKER_URL_REDIS_STREAMS")
	}
	stream = fmt.Sprint("bench-", time.Now().UnixNano())
	s = bench.Open(b, url, stream, driver.TopicSpec{}, nil)
	if u, ok := s.Conn().(driver.Unwrapper); !ok || !u.As(&client) {
		b.Skip("not a single server")
	}
	return s, client, stream
}

func BenchmarkStreamPublish(b *testing.B) {
	for _, window := range []int{50, 1000} {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) { benchPublish(b, window) })
	}
}

func benchPublish(b *testing.B, window int) {
	b.Helper()
	const count = 100_000
	s, client, stream := benchSession(b)
	body := bytes.Repeat([]byte("x"), benchSize)
	sending := bench.Sending{Count: count, Size: benchSize, Window: window}
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Publish(client, stream, body, count, window) }},
		{Name: "raw full duplex", Run: func() (time.Duration, error) { return raw.PublishFullDuplex(client, stream, body, count, window) }},
		s.Produce(sending),
	}
	if redisBenchmark, ok := bench.Program(b, "BENCH_REDIS_BENCHMARK", "redis-benchmark"); ok {
		host, port, _ := strings.Cut(client.Options().Addr, ":")
		loops = append(loops, bench.Tool("redis-benchmark", count, func() *exec.Cmd {
			return redisBenchmark("-h", host, "-p", port, "-c", "1", "-P", fmt.Sprint(window), "-n", fmt.Sprint(count), "--csv",
				"XADD", stream, "NOMKSTREAM", "*", "body", string(body))
		}, bench.Last(`","([\d.]+)"`))) // the second column: requests per second
	}
	bench.Case{Name: fmt.Sprintf("redis-streams publish, window %d", window), Messages: count, Before: s.Purge, Loops: loops}.Compare(b)
}

func BenchmarkStreamConsume(b *testing.B) {
	const count, batch = 100_000, 500
	s, client, stream := benchSession(b)
	if err := s.Filler(bench.Sending{Size: benchSize, Window: 1000})(count); err != nil {
		b.Fatal(err)
	}
	groups := 0
	receiving := bench.Receiving{
		Count: count, Batch: batch, Config: driver.ConsumerConfig{Group: "ours", Prefetch: batch, Start: driver.StartEarliest},
	}
	bench.Case{Name: "redis-streams consume, batch ack", Messages: count, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			groups++
			return raw.Consume(client, stream, fmt.Sprint("raw-", groups), count, batch)
		}},
		s.Consume(receiving),
	}}.Compare(b)
}
