package pulsar

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-pulsar/internal/raw"
)

// The benchmarks compare the driver, and the engine on it, with loops written by hand over pulsar-client-go: the same broker, topic, size of
// messages and guarantee, and with pulsar-perf. Run them with -benchtime=1x. BROKER_URL_PULSAR names the broker, and BENCH_PULSAR_PERF the
// program, else it is looked for on PATH.
const (
	benchMessages = 100_000
	benchSize     = 100
	benchWindow   = 10_000
	benchBatch    = 1000
	benchSeconds  = 8                  // that pulsar-perf sends: it has time to get warm, and does not fill the disk
	benchTool     = 10 * benchMessages // that it consumes
)

// sameAsRaw are the settings of the hand-written loop and of the tool.
var sameAsRaw = map[string]any{"batching": "default", "batchDelay": "1ms"}

func benchSession(b *testing.B) (s *bench.Session, client pulsar.Client, hosts, topic string) {
	b.Helper()
	url := os.Getenv("BROKER_URL_PULSAR")
	if url == "" {
		b.Skip("no BROKER_URL_PULSAR")
	}
	_, hosts, _ = strings.Cut(url, "://")
	hosts, _, _ = strings.Cut(hosts, "?")
	topic = fmt.Sprintf("bench-%012x", rand.Uint64()>>16)
	s = bench.Open(b, url, topic, driver.TopicSpec{Partitions: 1}, nil)
	client, err := raw.Client(hosts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	return s, client, hosts, topic
}

func BenchmarkPublish(b *testing.B) {
	s, client, hosts, topic := benchSession(b)
	body := bytes.Repeat([]byte("x"), benchSize)
	sending := bench.Sending{Count: benchMessages, Size: benchSize, Window: benchWindow, Options: sameAsRaw}
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Produce(client, topic, body, benchMessages, benchWindow) }},
		s.Produce(sending),
	}
	if perf, ok := pulsarPerf(b); ok {
		loops = append(loops, bench.Tool("pulsar-perf", benchMessages, func() *exec.Cmd {
			return perf("produce", "--service-url", "pulsar://"+hosts, "--rate", "1000000000", "--size", fmt.Sprint(benchSize), "--max-outstanding", fmt.Sprint(benchWindow),
				"--batch-time-window", "1", "--batch-max-messages", "1000", "--batch-max-bytes", fmt.Sprint(128<<10),
				"--test-duration", fmt.Sprint(benchSeconds), topic)
		}, produceRate))
	}
	bench.Case{Name: "pulsar produce, batches of 1 ms", Messages: benchMessages, Loops: loops}.Compare(b)
}

// produceRate divides by the seconds from the first message to the last. pulsar-perf itself does by all until it looks whether it is done, every ten.
func produceRate(output io.Reader) (float64, error) {
	sent, err := bench.Last(`Aggregated throughput stats --- (\d+) records sent`)(output)
	return sent / benchSeconds, err
}

// pulsarPerf runs it as it is distributed, but for its file of a log without a line.
func pulsarPerf(b *testing.B) (command func(args ...string) *exec.Cmd, ok bool) {
	b.Helper()
	perf, ok := bench.Program(b, "BENCH_PULSAR_PERF", "pulsar-perf")
	logs := b.TempDir()
	return func(args ...string) *exec.Cmd {
		cmd := perf(args...)
		cmd.Env = append(os.Environ(), "PULSAR_LOG_DIR="+logs)
		return cmd
	}, ok
}

func BenchmarkConsume(b *testing.B) {
	s, client, hosts, topic := benchSession(b)
	if err := s.Filler(bench.Sending{Size: benchSize, Window: benchWindow, Options: sameAsRaw})(benchTool); err != nil {
		b.Fatal(err)
	}
	groups := 0
	group := func(of string) string { groups++; return fmt.Sprintf("%s-%s-%d", topic, of, groups) }
	receiving := func(name string, prefetch int) bench.Receiving {
		return bench.Receiving{
			Count: benchMessages, Batch: benchBatch, Options: map[string]any{"ackDelay": "5ms"},
			Config: driver.ConsumerConfig{Group: group(name), Prefetch: prefetch, Start: driver.StartEarliest},
		}
	}
	// The client has the same queue as that of the hand-written loop where a prefetch is four times as long: see queueOf.
	alike := receiving("ours", 4*benchBatch)
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			return raw.Consume(client, topic, group("raw"), benchMessages, benchBatch, true)
		}},
		{Name: "raw batches", Run: func() (time.Duration, error) {
			return raw.Consume(client, topic, group("batches"), benchMessages, benchBatch, false)
		}},
		s.Consume(alike),
	}
	if perf, ok := pulsarPerf(b); ok {
		loops = append(loops, bench.Tool("pulsar-perf", benchMessages, func() *exec.Cmd {
			return perf("consume", "--service-url", "pulsar://"+hosts, "--subscription-type", "Shared", "--subscriptions", group("tool"),
				"--subscription-position", "Earliest", "--receiver-queue-size", fmt.Sprint(benchBatch), "--acks-delay-millis", "5",
				"--num-messages", fmt.Sprint(benchTool), topic)
		}, bench.Best(`(?:Throughput received: .* msg|records received) --- +([\d.]+) +msg/s`, 0)))
	}
	bench.Case{Name: "pulsar consume, shared, acks of 5 ms", Messages: benchMessages, Loops: loops}.Compare(b)
}
