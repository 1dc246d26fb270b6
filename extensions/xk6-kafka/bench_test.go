package kafka

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/bench"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-kafka/internal/raw"
)

// The benchmarks compare the drivers, and the engine on them, with loops written by hand over franz-go and with Kafka's own
// performance tools: the same broker, topic, size of messages and guarantee. Run them with -benchtime=1x. BROKER_URL_KAFKA names
// the broker, and BENCH_KAFKA_JARS a folder with the jars of the tools.
const (
	benchPartitions = 6
	benchMessages   = 500_000
	benchSize       = 100
	benchWindow     = 10_000
	benchBatch      = 1000
	benchTool       = 3 * benchMessages // a tool is given time to get warm
)

// sameAsRaw are the settings of the hand-written loop and of the tools.
var sameAsRaw = map[string]any{"acks": "leader", "compression": "none", "linger": "0"}

func benchSession(b *testing.B, variable string) (s *bench.Session, hosts []string, topic string) {
	b.Helper()
	url := os.Getenv(variable)
	if url == "" {
		b.Skipf("no %s", variable)
	}
	_, list, _ := strings.Cut(url, "://")
	list, _, _ = strings.Cut(list, "?")
	topic = newTopicName()
	s = bench.Open(b, url, topic, driver.TopicSpec{Partitions: benchPartitions}, nil)
	return s, strings.Split(strings.TrimSuffix(list, "/"), ","), topic
}

func BenchmarkPublish(b *testing.B) {
	s, hosts, topic := benchSession(b, "BROKER_URL_KAFKA")
	cl, err := raw.Producer(hosts, topic, benchWindow)
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	body := bytes.Repeat([]byte("x"), benchSize)
	sending := bench.Sending{Count: benchMessages, Size: benchSize, Window: benchWindow, Options: sameAsRaw}
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) { return raw.Produce(cl, body, benchMessages) }},
		s.Produce(sending),
	}
	if java, ok := bench.Java(b, "BENCH_KAFKA_JARS"); ok {
		loops = append(loops, bench.Tool("ProducerPerformance", benchMessages, func() *exec.Cmd {
			return java("org.apache.kafka.tools.ProducerPerformance", "--bootstrap-server", strings.Join(hosts, ","), "--topic", topic,
				"--num-records", fmt.Sprint(benchTool), "--warmup-records", fmt.Sprint(benchMessages), "--record-size", fmt.Sprint(benchSize),
				"--throughput", "-1", "--command-property", "acks=1", "enable.idempotence=false", "compression.type=none")
		}, bench.Last(`\d+ records sent, ([\d.]+) records/sec`))) // what is said last is about all messages after those to get warm
	}
	bench.Case{Name: "kafka produce, acks=1, 6 partitions", Messages: benchMessages, Loops: loops}.Compare(b)
}

func BenchmarkConsume(b *testing.B) {
	s, hosts, topic := benchSession(b, "BROKER_URL_KAFKA")
	if err := s.Filler(bench.Sending{Size: benchSize, Window: benchWindow, Options: sameAsRaw})(benchTool); err != nil {
		b.Fatal(err)
	}
	groups := 0
	group := func(of string) string { groups++; return fmt.Sprintf("%s-%s-%d", topic, of, groups) }
	receiving := bench.Receiving{
		Count: benchMessages, Batch: benchBatch,
		Config: driver.ConsumerConfig{Group: group("ours"), Prefetch: benchBatch, Start: driver.StartEarliest},
	}
	loops := []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			return raw.Consume(hosts, topic, group("raw"), benchMessages, benchBatch)
		}},
		s.Consume(receiving),
	}
	if java, ok := bench.Java(b, "BENCH_KAFKA_JARS"); ok {
		loops = append(loops, bench.Tool("ConsumerPerformance", benchMessages, func() *exec.Cmd {
			return java("org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", strings.Join(hosts, ","), "--topic", topic,
				"--num-records", fmt.Sprint(benchTool), "--group", group("tool"), "--hide-header")
		}, bench.Last(`^(?:[^,]*,){9} *([\d.]+)$`))) // fetch.nMsg.sec, the last of ten columns: the time to join is not in it
	}
	bench.Case{Name: "kafka consume, 6 partitions, marked for commit", Messages: benchMessages, Loops: loops}.Compare(b)
}

// BenchmarkShare gives both the same size of fetches, which are made when there is room for their messages.
func BenchmarkShare(b *testing.B) {
	const count, fetch = benchMessages / 5, 500
	s, hosts, topic := benchSession(b, "BROKER_URL_KAFKA_SHARE")
	if err := s.Filler(bench.Sending{Size: benchSize, Window: benchWindow})(count); err != nil {
		b.Fatal(err)
	}
	groups := 0
	receiving := bench.Receiving{
		Count: count, Batch: fetch, Config: driver.ConsumerConfig{Group: topic + "-ours", Prefetch: 4 * fetch, Start: driver.StartEarliest},
	}
	bench.Case{Name: "kafka-share consume, acks", Messages: count, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			groups++
			name := fmt.Sprintf("%s-raw-%d", topic, groups)
			c, ok := s.Conn().(*conn)
			if !ok {
				return 0, fmt.Errorf("%T has no share groups", s.Conn())
			}
			if _, err := c.anchorShare(context.Background(), topic, name, driver.StartEarliest); err != nil {
				return 0, err
			}
			return raw.Share(hosts, topic, name, count, fetch)
		}},
		s.Consume(receiving),
	}}.Compare(b)
}

// BenchmarkKMQ has a tracker beside each loop, and all messages in the topic when it begins.
func BenchmarkKMQ(b *testing.B) {
	const count, batch = benchMessages / 5, 1000
	s, hosts, topic := benchSession(b, "BROKER_URL_KMQ")
	if err := s.Filler(bench.Sending{Size: benchSize, Window: benchWindow})(count); err != nil {
		b.Fatal(err)
	}
	groups := 0
	receiving := bench.Receiving{
		Count: count, Batch: batch, Config: driver.ConsumerConfig{Group: topic + "-ours", Prefetch: 4 * batch, Start: driver.StartEarliest},
	}
	bench.Case{Name: "kmq consume, acks", Messages: count, Loops: []bench.Loop{
		{Name: "raw", Run: func() (time.Duration, error) {
			groups++
			c, ok := s.Conn().(*kmqConn)
			if !ok {
				return 0, fmt.Errorf("%T has no markers", s.Conn())
			}
			q := queue{topic: topic, group: fmt.Sprintf("%s-raw-%d", topic, groups)}
			q.markers = markersTopic(topic, q.group)
			if err := c.makeMarkersTopic(context.Background(), q); err != nil {
				return 0, err
			}
			return raw.KMQ(hosts, topic, q.markers, q.group, count, batch)
		}},
		s.Consume(receiving),
	}}.Compare(b)
}
