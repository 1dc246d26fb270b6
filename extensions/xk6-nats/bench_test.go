package nats

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-nats/internal/raw"
)

const (
	benchBody   = 100
	benchWindow = 4096
	benchRounds = 5
)

// The benchmarks compare a driver with a hand-written loop, in turns, and report the ratio of the medians. Run them with
// -benchtime=1x. BROKER_URL_NATS and BROKER_URL_NATS_JETSTREAM choose a server, else it is the embedded one.
func benchURL(env, embedded string) string {
	if url := os.Getenv(env); url != "" {
		return url
	}
	return embedded
}

// compare runs both loops in turns. The ratio of the rates is what counts, on an idle machine; the ratio of the CPU times of
// the process, the embedded server's included, is what holds on a busy one.
func compare(b *testing.B, count int, loops map[string]func() time.Duration) {
	b.Helper()
	rates, cpu := map[string][]float64{}, map[string][]float64{}
	names := []string{"raw", "driver"}
	for range b.N {
		for range benchRounds {
			for _, name := range names {
				before := cpuTime(b)
				rates[name] = append(rates[name], float64(count)/loops[name]().Seconds())
				cpu[name] = append(cpu[name], float64(count)/(cpuTime(b)-before).Seconds())
			}
			slices.Reverse(names)
		}
	}
	median := func(all []float64) float64 {
		slices.Sort(all)
		return all[len(all)/2]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(rates["raw"]), "raw-msg/s")
	b.ReportMetric(median(rates["driver"]), "driver-msg/s")
	b.ReportMetric(median(rates["driver"])/median(rates["raw"]), "ratio")
	b.ReportMetric(median(cpu["driver"])/median(cpu["raw"]), "cpu-ratio")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// sendAll sends count messages in batches, with at most window of them outstanding.
func sendAll(b testing.TB, p driver.Producer, count, window, size int) time.Duration {
	b.Helper()
	ctx := context.Background()
	tokens := make(chan struct{}, window)
	var left atomic.Int64
	left.Store(int64(count))
	finished := make(chan struct{})
	done := func(_ int, err error) {
		if err != nil {
			b.Error(err)
		}
		<-tokens
		if left.Add(-1) == 0 {
			close(finished)
		}
	}
	body := make([]byte, benchBody)
	start := time.Now()
	for sent := 0; sent < count; sent += size {
		batch := make(driver.Batch, min(size, count-sent))
		for i := range batch {
			batch[i].Body = body
			tokens <- struct{}{}
		}
		p.Send(ctx, batch, done)
	}
	<-finished
	return time.Since(start)
}

func BenchmarkCorePublish(b *testing.B) {
	const count = 1_000_000
	c, a := open(b, benchURL("BROKER_URL_NATS", "embedded-nats:"))
	nc := client(b, c)
	p := must[driver.Producer](b)(c.NewProducer(context.Background(), driver.ProducerConfig{Topic: "bench", Window: benchWindow, Options: values(b, a, driver.OnProducer, nil)}))
	body := make([]byte, benchBody)
	compare(b, count, map[string]func() time.Duration{
		"raw": func() time.Duration { return must[time.Duration](b)(raw.PublishCore(nc, "bench", body, count)) },
		"driver": func() time.Duration {
			batch := make(driver.Batch, 64)
			for i := range batch {
				batch[i].Body = body
			}
			start := time.Now()
			for sent := 0; sent < count; sent += len(batch) {
				p.Send(context.Background(), batch, func(_ int, err error) {
					if err != nil {
						b.Error(err)
					}
				})
			}
			if err := nc.Flush(); err != nil {
				b.Fatal(err)
			}
			return time.Since(start)
		},
	})
}

func BenchmarkCoreConsume(b *testing.B) {
	const count = 500_000
	c, a := open(b, benchURL("BROKER_URL_NATS", "embedded-nats:"))
	other, _ := open(b, benchURL("BROKER_URL_NATS", "embedded-nats:"))
	nc, sender := client(b, c), client(b, other)
	body := make([]byte, benchBody)
	var received atomic.Int64
	// feed publishes as fast as the consumer takes it, so that nothing is dropped.
	feed := func() {
		received.Store(0)
		go func() {
			for i := range int64(count) {
				for i%256 == 0 && i-received.Load() > 32768 {
					time.Sleep(50 * time.Microsecond)
				}
				if err := sender.Publish("bench", body); err != nil {
					b.Error(err)
				}
			}
		}()
	}
	compare(b, count, map[string]func() time.Duration{
		"raw": func() time.Duration {
			return must[time.Duration](b)(raw.ConsumeCore(nc, "bench", count, feed, func() { received.Add(1) }))
		},
		"driver": func() time.Duration {
			ctx := context.Background()
			k := must[driver.Consumer](b)(c.NewConsumer(ctx, driver.ConsumerConfig{Topic: "bench", Prefetch: 1000, Start: driver.StartNew, Options: values(b, a, driver.OnConsumer, nil)}))
			defer func() { _ = k.Close(ctx) }()
			batch := make(driver.Batch, 100)
			start := time.Now()
			feed()
			for got := 0; got < count; {
				n := must[int](b)(k.Receive(ctx, batch))
				got += n
				received.Add(int64(n))
			}
			return time.Since(start)
		},
	})
}

func benchStream(b *testing.B) (driver.Conn, *driver.Address, jetstream.JetStream) {
	b.Helper()
	c, a := open(b, benchURL("BROKER_URL_NATS_JETSTREAM", "embedded:"))
	admin := c.(driver.Admin)
	ctx := context.Background()
	_ = admin.DeleteTopic(ctx, "bench")
	if err := admin.CreateTopic(ctx, driver.TopicSpec{Name: "bench", Partitions: 1, Replicas: 1, Options: values(b, a, driver.OnTopic, nil)}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = admin.DeleteTopic(ctx, "bench") })
	var js jetstream.JetStream
	c.(driver.Unwrapper).As(&js)
	return c, a, js
}

func BenchmarkStreamPublish(b *testing.B) {
	const count = 200_000
	c, a, _ := benchStream(b)
	nc := client(b, c)
	p := must[driver.Producer](b)(c.NewProducer(context.Background(), driver.ProducerConfig{Topic: "bench", Window: benchWindow, Options: values(b, a, driver.OnProducer, nil)}))
	body := make([]byte, benchBody)
	purge := func() {
		if err := c.(driver.Admin).PurgeTopic(context.Background(), "bench"); err != nil {
			b.Fatal(err)
		}
	}
	compare(b, count, map[string]func() time.Duration{
		"raw": func() time.Duration {
			defer purge()
			return must[time.Duration](b)(raw.PublishStream(nc, "bench", body, count, benchWindow))
		},
		"driver": func() time.Duration { defer purge(); return sendAll(b, p, count, benchWindow, 64) },
	})
	if err := p.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkStreamConsume(b *testing.B) { benchConsume(b, false) }

// BenchmarkStreamFetch is against the simplest loop, Fetch and Ack.
func BenchmarkStreamFetch(b *testing.B) { benchConsume(b, true) }

func benchConsume(b *testing.B, fetch bool) {
	const (
		count    = 100_000
		size     = 100
		prefetch = 1000
	)
	c, a, js := benchStream(b)
	ctx := context.Background()
	p := must[driver.Producer](b)(c.NewProducer(ctx, driver.ProducerConfig{Topic: "bench", Window: benchWindow, Options: values(b, a, driver.OnProducer, nil)}))
	sendAll(b, p, count, benchWindow, 64)
	compare(b, count, map[string]func() time.Duration{
		"raw": func() time.Duration {
			start := time.Now()
			k := must[jetstream.Consumer](b)(js.CreateConsumer(ctx, "bench", jetstream.ConsumerConfig{Durable: "raw", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 100_000}))
			defer func() { _ = js.DeleteConsumer(ctx, "bench", "raw") }()
			if fetch {
				must[time.Duration](b)(raw.FetchStream(ctx, k, count, size))
			} else {
				must[time.Duration](b)(raw.ConsumeStream(k, count, prefetch))
			}
			return time.Since(start)
		},
		"driver": func() time.Duration {
			defer func() { _ = js.DeleteConsumer(ctx, "bench", "driver") }()
			start := time.Now()
			k := must[driver.Consumer](b)(c.NewConsumer(ctx, driver.ConsumerConfig{Topic: "bench", Group: "driver", Prefetch: prefetch, Start: driver.StartEarliest, Options: values(b, a, driver.OnConsumer, nil)}))
			defer func() { _ = k.Close(ctx) }()
			batch := make(driver.Batch, size)
			for got := 0; got < count; {
				n := must[int](b)(k.Receive(ctx, batch))
				if err := k.Settle(ctx, batch[:n], driver.Ack); err != nil {
					b.Fatal(err)
				}
				got += n
			}
			return time.Since(start)
		},
	})
}
