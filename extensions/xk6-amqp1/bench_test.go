package amqp1_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	amqp "github.com/Azure/go-amqp"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-amqp1/internal/raw"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The benchmarks compare the driver, and the engine on it, with loops written by hand over go-amqp, and with artemis perf: the same broker, protocol, queue,
// size of messages, window and credit. Run them with -benchtime=1x. BROKER_URL_AMQP1 names the broker, and BENCH_ARTEMIS Artemis's program, else it is looked for
// on PATH.
const (
	benchMessages = 30_000
	benchSize     = 100
	benchWindow   = 1000
	benchSeconds  = 8 // of artemis perf, whose best second counts
	benchBacklog  = 200_000
)

func benchSession(b *testing.B) (s *bench.Session, client *amqp.Conn, topic string) {
	b.Helper()
	address := os.Getenv("BROKER_URL_AMQP1")
	if address == "" {
		b.Skip("no BROKER_URL_AMQP1")
	}
	topic = fmt.Sprintf("bench-%012x", rand.Uint64()>>16)
	s = bench.Open(b, address, topic, driver.TopicSpec{}, nil)
	if u, ok := s.Conn().(driver.Unwrapper); !ok || !u.As(&client) {
		b.Fatal("no client")
	}
	return s, client, topic
}

func BenchmarkPublish(b *testing.B) {
	s, client, topic := benchSession(b)
	body := bytes.Repeat([]byte("x"), benchSize)
	sending := bench.Sending{Count: benchMessages, Size: benchSize, Window: benchWindow}
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Produce(client, topic, body, benchMessages, benchWindow) }},
		s.Produce(sending),
	}
	if perf, ok := artemisPerf(b, topic); ok {
		loops = append(loops, bench.Tool("artemis perf", benchMessages, func() *exec.Cmd {
			return perf("producer", "--persistent", "--message-size", fmt.Sprint(benchSize), "--max-pending", fmt.Sprint(benchWindow), "--duration", fmt.Sprint(benchSeconds))
		}, bench.Best(`completed: +(\d+) msg/sec`, 0)))
	}
	bench.Case{Name: "amqp1 produce, durable", Messages: benchMessages, Before: s.Purge, Loops: loops}.Compare(b)
}

// artemisPerf gives commands of artemis perf, which talk to a queue by AMQP 1.0.
func artemisPerf(b *testing.B, queue string) (command func(what string, args ...string) *exec.Cmd, ok bool) {
	b.Helper()
	artemis, ok := bench.Program(b, "BENCH_ARTEMIS", "artemis")
	address, err := url.Parse(os.Getenv("BROKER_URL_AMQP1"))
	if err != nil {
		b.Fatal("BROKER_URL_AMQP1 is malformed")
	}
	server := fmt.Sprintf("amqp://%s?jms.prefetchPolicy.all=%d", address.Host, benchWindow)
	return func(what string, args ...string) *exec.Cmd {
		return artemis(append(append([]string{"perf", what, "--protocol", "AMQP", "--url", server}, args...), "queue://"+queue)...)
	}, ok
}

func BenchmarkConsume(b *testing.B) {
	s, client, topic := benchSession(b)
	fill := s.Filler(bench.Sending{Size: benchSize, Window: benchWindow})
	receiving := bench.Receiving{Count: benchMessages, Batch: 500, Config: driver.ConsumerConfig{Prefetch: benchWindow, Start: driver.StartEarliest}}
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Consume(client, topic, benchMessages, benchWindow) }},
		s.Consume(receiving),
	}
	if perf, ok := artemisPerf(b, topic); ok {
		loops = append(loops, bench.Tool("artemis perf", benchMessages, func() *exec.Cmd {
			return perf("consumer", "--message-count", fmt.Sprint(benchBacklog))
		}, bench.Best(`received: +(\d+) msg/sec`, 0)).After(func() error { return fill(benchBacklog - benchMessages) })) // it gets more than the others, to get warm
	}
	bench.Case{Name: "amqp1 consume, each accepted", Messages: benchMessages, Before: func() error {
		if err := s.Purge(); err != nil {
			return err
		}
		return fill(benchMessages)
	}, Loops: loops}.Compare(b)
}
