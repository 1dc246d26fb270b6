package amqp_test

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-amqp/internal/raw"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The benchmarks compare the driver, and the engine on it, with loops written by hand over amqp091-go and with RabbitMQ's PerfTest:
// the same broker, queue, size of messages, window and prefetch. Run them with -benchtime=1x. BROKER_URL_RABBITMQ names the
// broker, and BENCH_PERFTEST_JARS a folder with the jars of PerfTest.
const (
	benchMessages = 30_000
	benchSize     = 100
	benchWindow   = 1000 // messages unconfirmed, or not settled
	benchBatch    = 100  // acknowledged at once
	benchSeconds  = 6    // of PerfTest, whose best second counts
	benchBacklog  = 60_000
)

// rabbit is what the cases of one kind of queue share.
type rabbit struct {
	*bench.Session
	kind, queue string
	raw         *amqp091.Connection
	perfTest    func(args ...string) *exec.Cmd // nil where there is none
	fill        func(count int) error
}

func newRabbit(b *testing.B, kind string) *rabbit {
	b.Helper()
	r := &rabbit{kind: kind, queue: unique()}
	address := server(b, "rabbitmq")
	if address == "" {
		b.Skip("no BROKER_URL_RABBITMQ")
	}
	plain, err := url.Parse(server(b, "amqp"))
	if err != nil {
		b.Fatal("BROKER_URL_RABBITMQ is malformed")
	}
	plain.RawQuery = "" // the other clients do not know our options
	if r.raw, err = amqp091.Dial(plain.String()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.raw.Close() })
	r.Session = bench.Open(b, address, r.queue, driver.TopicSpec{}, map[string]any{"queueType": kind})
	r.fill = r.Filler(bench.Sending{Size: benchSize, Window: benchWindow})
	if java, ok := bench.Java(b, "BENCH_PERFTEST_JARS"); ok {
		r.perfTest = func(args ...string) *exec.Cmd {
			return java("com.rabbitmq.perf.PerfTest", append([]string{"--uri", plain.String(), "--queue", r.queue, "--predeclared"}, args...)...)
		}
	}
	return r
}

func BenchmarkPublish(b *testing.B) {
	for _, kind := range []string{"classic", "quorum"} {
		b.Run(kind, func(b *testing.B) { newRabbit(b, kind).publish(b) })
	}
}

func (r *rabbit) publish(b *testing.B) {
	b.Helper()
	body := make([]byte, benchSize)
	sending := bench.Sending{Count: benchMessages, Size: benchSize, Window: benchWindow}
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Publish(r.raw, r.queue, body, benchMessages, benchWindow) }},
		r.Produce(sending),
	}
	if r.perfTest != nil {
		loops = append(loops, bench.Tool("PerfTest", benchMessages, func() *exec.Cmd {
			return r.perfTest("--producers", "1", "--consumers", "0", "--exchange", "", "--routing-key", r.queue, "--time", fmt.Sprint(benchSeconds),
				"--confirm", fmt.Sprint(benchWindow), "--size", fmt.Sprint(benchSize), "--flag", "persistent", "--flag", "mandatory")
		}, bestSecond))
	}
	bench.Case{
		Name: fmt.Sprintf("rabbitmq publish, %s, window %d", r.kind, benchWindow), Messages: benchMessages, Before: r.Purge, Loops: loops,
	}.Compare(b)
}

func BenchmarkConsume(b *testing.B) {
	for _, kind := range []string{"classic", "quorum"} {
		b.Run(kind, func(b *testing.B) { newRabbit(b, kind).consume(b) })
	}
}

func (r *rabbit) consume(b *testing.B) {
	b.Helper()
	receiving := bench.Receiving{
		Count: benchMessages, Batch: benchBatch, Config: driver.ConsumerConfig{Prefetch: benchWindow, Start: driver.StartEarliest},
	}
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			return raw.Consume(r.raw, r.queue, benchMessages, benchWindow, benchBatch)
		}},
		r.Consume(receiving),
	}
	if r.perfTest != nil {
		loops = append(loops, bench.Tool("PerfTest", benchMessages, func() *exec.Cmd {
			return r.perfTest("--producers", "0", "--consumers", "1", "--qos", fmt.Sprint(benchWindow),
				"--multi-ack-every", fmt.Sprint(benchBatch), "--cmessages", fmt.Sprint(benchBacklog))
		}, bestSecond).After(func() error { return r.fill(benchBacklog - benchMessages) })) // it gets more than the others, to get warm
	}
	bench.Case{
		Name: fmt.Sprintf("rabbitmq consume, %s, prefetch %d", r.kind, benchWindow), Messages: benchMessages,
		Before: func() error { return errors.Join(r.Purge(), r.fill(benchMessages)) }, Loops: loops,
	}.Compare(b)
}

var (
	perSecond = regexp.MustCompile(`time ([\d.]+) s, (?:sent|received): ([\d.]+) msg/s`)
	onAverage = regexp.MustCompile(`(?:sending|receiving) rate avg: ([\d.]+) msg/s`)
)

// bestSecond reads the greatest rate that PerfTest had over about a second, or over the whole run.
func bestSecond(output io.Reader) (float64, error) {
	said, err := io.ReadAll(output)
	if err != nil {
		return 0, err
	}
	best, last := 0.0, 0.0
	for _, m := range perSecond.FindAllStringSubmatch(string(said), -1) {
		at, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, fmt.Errorf("time: %w", err)
		}
		rate, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return 0, fmt.Errorf("rate: %w", err)
		}
		if at-last > 0.5 {
			best = max(best, rate)
		}
		last = at
	}
	for _, m := range onAverage.FindAllStringSubmatch(string(said), -1) {
		rate, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, fmt.Errorf("average: %w", err)
		}
		best = max(best, rate)
	}
	return best, nil
}
