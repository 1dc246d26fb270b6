package kafka

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

func TestProducerOptions(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 3)
	for _, given := range []map[string]any{
		{"acks": "all"},
		{"acks": "all", "idempotence": false},
		{"acks": "leader"},
		{"acks": "none"},
		{"compression": "gzip"},
		{"compression": "snappy"},
		{"compression": "lz4"},
		{"compression": "zstd"},
		{"partitioner": "uniform"},
		{"partitioner": "roundrobin"},
		{"partition": 2},
		{"linger": "20ms"},
		{"retries": 0},
		{"inFlight": 1, "acks": "leader"},
		{"batchMaxBytes": "4KiB"},
		{"profile": "throughput"},
		{"profile": "durable"},
	} {
		t.Run(fmt.Sprint(given), func(t *testing.T) {
			c := f.consumer(t, topic, "")
			defer func() { closed(t, c) }()
			b := numbered("m", 50)
			for i := range b {
				b[i].Key = []byte{byte(i % 5)}
				b[i].Headers = []driver.Header{{Name: "n", Value: []byte{byte(i), 0, 255}}, {Name: "n", Value: nil}}
			}
			f.send(t, f.producer(t, topic, given), b)
			partitions := map[byte]int32{}
			for _, m := range take(t, c, len(b)) {
				i := m.Headers[0].Value[0]
				if !bytes.Equal(m.Body, b[i].Body) || !bytes.Equal(m.Key, b[i].Key) || len(m.Headers) != 2 || m.Headers[1].Name != "n" {
					t.Fatalf("message %d came as %+v", i, m)
				}
				if want, ok := given["partition"]; ok && int(m.Partition) != want {
					t.Fatalf("message %d went to partition %d", i, m.Partition)
				}
				if before, seen := partitions[m.Key[0]]; seen && before != m.Partition && given["partitioner"] != "roundrobin" {
					t.Fatalf("key %v went to partitions %d and %d", m.Key, before, m.Partition)
				}
				partitions[m.Key[0]] = m.Partition
			}
		})
	}
}

// A message that is too large for a batch is no matter of the broker's, and the other way round.
func TestWhoFindsAMessageTooLarge(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 1)
	for _, c := range []struct {
		batch string
		size  int
		want  string
	}{
		{"4KiB", 4096, `option "batchMaxBytes" is 4096`},
		{"4KiB", 3800, ""},
		{"1048588", 1 << 20, `option "batchMaxBytes" is 1048588`},
		{"4MiB", 2 << 20, "larger than the max message size the server will accept"},
	} {
		p := f.producer(t, topic, map[string]any{"batchMaxBytes": c.batch})
		err := sendAll(within(t), p, driver.Batch{{Body: make([]byte, c.size)}})[0]
		switch kind := f.address.Driver.KindOf(err); {
		case c.want == "":
			if err != nil {
				t.Errorf("%d bytes, batches of %s: %v", c.size, c.batch, err)
			}
		case err == nil || kind != driver.Rejected || strings.Contains(err.Error(), "server") != strings.Contains(c.want, "server") || !strings.Contains(err.Error(), c.want):
			t.Errorf("%d bytes, batches of %s: %v, kind %s; want %q, rejected", c.size, c.batch, err, kind, c.want)
		}
	}
}

func TestPartitionThatDoesNotExist(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 3)
	_, err := f.conn.NewProducer(within(t), driver.ProducerConfig{
		Topic: topic, Window: 1, Options: f.values(t, driver.OnProducer, map[string]any{"partition": 3}),
	})
	if err == nil || !strings.Contains(err.Error(), "partitions 0 to 2") || f.address.Driver.KindOf(err) != driver.Rejected {
		t.Errorf("a producer for partition 3 of 3: %v", err)
	}
}

func TestMessagesWithoutKeyAreSpread(t *testing.T) {
	t.Parallel()
	f := single(t)
	topic := f.topic(t, 3)
	c := f.consumer(t, topic, "")
	defer func() { closed(t, c) }()
	p := f.producer(t, topic, nil)
	for range 100 {
		f.send(t, p, numbered("m", 1))
	}
	counts := map[int32]int{}
	for _, m := range take(t, c, 100) {
		counts[m.Partition]++
	}
	if len(counts) != 3 {
		t.Errorf("100 messages, each sent alone, went to the partitions %v", counts)
	}
}

// behind gives a connection through a proxy.
func behind(t *testing.T) (*fixture, *proxy.Proxy) {
	t.Helper()
	raw := server("BROKER_URL_KAFKA")
	if raw == "" {
		t.Skip("no BROKER_URL_KAFKA")
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.Listen(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	u.Host = p.Addr()
	return newFixture(t, u.String()), p
}

// A broker that hangs must not stop the sender: not by a limit of the client library's buffer, whatever the window is.
func TestSendDoesNotWaitForABrokerThatHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	const window = 200_000
	f, p := behind(t)
	topic := single(t).topic(t, 1)
	producer := f.producer(t, topic, nil)
	f.send(t, producer, numbered("before", 1))
	p.Freeze()
	defer p.Thaw()
	var failed error
	var mu sync.Mutex
	var wg sync.WaitGroup
	wg.Add(window)
	begin := time.Now()
	for i := range window {
		producer.Send(context.Background(), driver.Batch{{Body: fmt.Append(nil, i)}}, func(_ int, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			}
			wg.Done()
		})
	}
	took := time.Since(begin)
	t.Logf("%d messages were handed over in %v while the broker hung", window, took)
	if took > 20*time.Second {
		t.Errorf("handing %d messages over took %v", window, took)
	}
	p.Thaw()
	wg.Wait()
	if failed != nil {
		t.Error(failed)
	}
}

// A message fails when its time is over, and the error says why.
func TestDeliveryTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	for _, given := range []map[string]any{{}, {"idempotence": false}, {"acks": "leader"}} {
		t.Run(fmt.Sprint(given), func(t *testing.T) {
			f, p := behind(t)
			topic := single(t).topic(t, 1)
			given["deliveryTimeout"] = "1s"
			producer := f.producer(t, topic, given)
			f.send(t, producer, numbered("before", 1))
			p.Freeze()
			begin := time.Now()
			errs := sendAll(within(t), producer, numbered("hung", 3))
			took := time.Since(begin)
			for _, err := range errs {
				if kind := f.address.Driver.KindOf(err); err == nil || kind != driver.Timeout {
					t.Errorf("the broker hung: %v, kind %s", err, kind)
				}
			}
			t.Logf("failed after %v: %v", took, errs[0])
			if took < time.Second || took > 15*time.Second {
				t.Errorf("it failed after %v, with a deliveryTimeout of 1s", took)
			}
			p.Refuse(true)
			p.Cut()
			p.Thaw()
			for _, err := range sendAll(within(t), producer, numbered("away", 3)) {
				if kind := f.address.Driver.KindOf(err); err == nil || kind != driver.Disconnected && kind != driver.Timeout {
					t.Errorf("the broker was away: %v, kind %s", err, kind)
				}
			}
			p.Refuse(false)
			f.send(t, producer, numbered("back", 3))
		})
	}
}

func TestConnectionAnswersForItself(t *testing.T) {
	t.Parallel()
	f := single(t)
	info := f.conn.(driver.Informer).Info()
	if !strings.HasPrefix(info.Server, "Apache Kafka 4") || info.Nodes != 1 || !strings.HasPrefix(info.Client, "franz-go") {
		t.Errorf("%+v", info)
	}
	var client *kgo.Client
	if !f.conn.(driver.Unwrapper).As(&client) || client == nil {
		t.Error("it does not lend its *kgo.Client")
	}
}
