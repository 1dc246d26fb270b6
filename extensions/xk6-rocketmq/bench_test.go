package rocketmq

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-rocketmq/internal/raw"
)

// The benchmarks compare the driver, and the engine on it, with loops written by hand: the same server, topic, size of messages, number of requests at a
// time and messages for each; and with RocketMQ's own benchmark, which speaks its older protocol, remoting. Run them with -benchtime=1x. BROKER_URL_ROCKETMQ
// names the server, and BENCH_ROCKETMQ_JARS a folder with the jars of the tool.
const (
	benchMessages = 20_000
	benchSize     = 100
	benchRequests = 64
	benchWindow   = 1000
	benchReceives = 4
	benchReports  = 5                   // of the tool, each about nine seconds, one second apart; the best of them counts
	benchBacklog  = 200 * benchMessages // for the tool, which consumes for ten seconds before its first report
)

func benchSession(b *testing.B) (s *bench.Session, c *conn, host, topic string) {
	b.Helper()
	url := os.Getenv("BROKER_URL_ROCKETMQ")
	if url == "" {
		b.Skip("no BROKER_URL_ROCKETMQ")
	}
	_, host, _ = strings.Cut(url, "://")
	host, _, _ = strings.Cut(host, "?")
	topic = fmt.Sprintf("bench-%012x", rand.Uint64()>>16)
	s = bench.Open(b, url, topic, driver.TopicSpec{Partitions: 4}, nil)
	return s, s.Conn().(*conn), host, topic
}

func BenchmarkPublish(b *testing.B) {
	s, c, host, topic := benchSession(b)
	server, err := c.servers.at(host)
	if err != nil {
		b.Fatal(err)
	}
	body := bytes.Repeat([]byte("x"), benchSize)
	sending := bench.Sending{Count: benchMessages, Size: benchSize, Window: benchWindow, Options: map[string]any{"requests": benchRequests}}
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			return raw.Produce(server.channel, topic, body, benchMessages, benchRequests)
		}},
		s.Produce(sending),
	}
	if java, ok := bench.Java(b, "BENCH_ROCKETMQ_JARS"); ok {
		loops = append(loops, bench.Tool("benchmark", benchMessages, func() *exec.Cmd {
			return java("org.apache.rocketmq.example.benchmark.Producer", "-n", strings.Join(c.admin.nameServers, ";"), "-t", topic,
				"-s", fmt.Sprint(benchSize), "-w", fmt.Sprint(benchRequests), "-ri", "1000")
		}, bench.Best(`Send TPS: (\d+) `, benchReports)))
	}
	bench.Case{Name: "rocketmq produce, 64 requests", Messages: benchMessages, Loops: loops}.Compare(b)
}

func BenchmarkConsume(b *testing.B) {
	s, c, _, topic := benchSession(b)
	if err := s.Filler(bench.Sending{Size: benchSize, Window: 64 * benchWindow, Options: map[string]any{"batch": 256}})(benchBacklog); err != nil {
		b.Fatal(err)
	}
	groups := 0
	group := func(of string) string { groups++; return fmt.Sprintf("%s-%s-%d", topic, of, groups) }
	options := map[string]any{"receives": benchReceives}
	receiving := bench.Receiving{
		Count: benchMessages, Batch: 1000, Options: options,
		Config: driver.ConsumerConfig{Group: group("ours"), Prefetch: 1000, Start: driver.StartEarliest},
	}
	ctx := context.Background()
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			// A consumer of the driver's makes the group and has the server know the client; it receives nothing.
			r, err := newIdleConsumer(ctx, c, topic, group("raw"))
			if err != nil {
				return 0, err
			}
			defer func() { _ = r.Close(ctx) }()
			b := r.route.brokers[0]
			server, err := c.servers.at(b.address)
			if err != nil {
				return 0, err
			}
			return raw.Consume(server.channel, r.id, r.group, b.queue, benchMessages, benchReceives)
		}},
		s.Consume(receiving),
	}
	if java, ok := bench.Java(b, "BENCH_ROCKETMQ_JARS"); ok {
		var name string
		loops = append(loops, bench.Tool("benchmark", benchMessages, func() *exec.Cmd {
			return java("org.apache.rocketmq.example.benchmark.Consumer", "-n", strings.Join(c.admin.nameServers, ";"), "-t", topic, "-g", name, "-ri", "1000")
		}, consumeRate).After(func() error {
			name = group("tool")
			return c.join(ctx, topic, name, false, driver.StartEarliest, 16)
		}))
	}
	bench.Case{Name: "rocketmq consume, 4 receives", Messages: benchMessages, Loops: loops}.Compare(b)
}

// consumeRate reads the best report. The first is about nine seconds after the first one: until then there must have been something to consume.
func consumeRate(output io.Reader) (float64, error) {
	perSecond, err := bench.Best(`Consume TPS: (\d+) `, benchReports)(output)
	if err == nil && 10*perSecond > benchBacklog {
		err = fmt.Errorf("%d messages were not enough for ten seconds", benchBacklog)
	}
	return perSecond, err
}

// newIdleConsumer is a member of a group that is known to the server and asks for nothing.
func newIdleConsumer(ctx context.Context, c *conn, topic, group string) (*consumer, error) {
	d, err := driver.Lookup("rocketmq")
	if err != nil {
		return nil, err
	}
	options, err := d.Resolve(driver.OnConsumer, driver.Latency, nil)
	if err != nil {
		return nil, err
	}
	r := c.newConsumer(driver.ConsumerConfig{Topic: topic, Group: group, Prefetch: 1, Start: driver.StartEarliest, Options: options})
	if r.route, err = c.find(ctx, topic); err != nil {
		return nil, err
	}
	if err := c.join(ctx, topic, group, r.route.fifo(), driver.StartEarliest, options.Int("maxAttempts")); err != nil {
		return nil, err
	}
	for _, b := range r.route.brokers {
		s, err := c.servers.at(b.address)
		if err != nil {
			return nil, err
		}
		if _, err := r.register(ctx, s); err != nil {
			return nil, err
		}
	}
	return r, nil
}
