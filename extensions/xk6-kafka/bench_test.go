package kafka

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// The benchmarks send and receive the same messages through the driver and through a loop written by hand over the same
// client library with the same settings, in turn, and report the medians, their ratio, and what processor time a message
// takes. One run of a benchmark is all that is needed: -benchtime=1x.
const (
	benchPartitions = 6
	benchMessages   = 500_000
	benchBatch      = 100
	benchWindow     = 10_000
	benchRounds     = 7
)

var benchBody = bytes.Repeat([]byte("x"), 100)

// sample is one round.
type sample struct{ rate, cpu float64 } // messages a second, ns a message

// round is one go at n messages; ready makes all ready for it.
type round struct {
	n     int
	ready func() (run, finish func())
}

func (r round) measure() sample {
	run, finish := r.ready()
	defer finish()
	cpu, begin := processor(), time.Now()
	run()
	return sample{float64(r.n) / time.Since(begin).Seconds(), float64(processor()-cpu) / float64(r.n)}
}

func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// compare runs both by turns, once each to warm up, and reports.
func compare(b *testing.B, n int, rawReady, oursReady func() (run, finish func())) {
	b.Helper()
	raw, ours := round{n, rawReady}, round{n, oursReady}
	for range b.N {
		var r, o []sample
		raw.measure()
		ours.measure()
		for range benchRounds {
			r, o = append(r, raw.measure()), append(o, ours.measure())
		}
		var ratios []float64
		for i := range r {
			ratios = append(ratios, o[i].rate/r[i].rate)
		}
		median := func(s []sample, of func(sample) float64) float64 {
			var v []float64
			for _, x := range s {
				v = append(v, of(x))
			}
			return middle(v)
		}
		rate, cpu := func(s sample) float64 { return s.rate }, func(s sample) float64 { return s.cpu }
		b.ReportMetric(median(r, rate), "raw-msg/s")
		b.ReportMetric(median(o, rate), "driver-msg/s")
		b.ReportMetric(middle(ratios), "ratio")
		b.ReportMetric(median(r, cpu), "raw-cpu-ns/msg")
		b.ReportMetric(median(o, cpu), "driver-cpu-ns/msg")
		b.ReportMetric(0, "ns/op")
	}
}

func middle(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }

func benchURL(b *testing.B) string {
	b.Helper()
	url := os.Getenv("BROKER_URL_KAFKA")
	if url == "" {
		b.Skip("no BROKER_URL_KAFKA")
	}
	return url
}

func BenchmarkPublish(b *testing.B) {
	f := newFixture(b, benchURL(b))
	topic := f.topic(b, benchPartitions)
	raw, err := kgo.NewClient(
		kgo.SeedBrokers(hosts(f)...), kgo.DefaultProduceTopic(topic),
		kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(5),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(2*benchWindow),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
	)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	p := f.producer(b, topic, map[string]any{"acks": "leader"})
	ctx := context.Background()

	always := func(run func()) func() (_, _ func()) { return func() (_, _ func()) { return run, func() {} } }
	compare(b, benchMessages, always(func() {
		window, wg := make(chan struct{}, benchWindow), sync.WaitGroup{}
		wg.Add(benchMessages)
		for range benchMessages {
			window <- struct{}{}
			raw.Produce(ctx, &kgo.Record{Value: benchBody}, func(_ *kgo.Record, err error) {
				if err != nil {
					b.Error(err)
				}
				<-window
				wg.Done()
			})
		}
		wg.Wait()
	}), always(func() {
		window, wg := make(chan struct{}, benchWindow), sync.WaitGroup{}
		wg.Add(benchMessages)
		done := func(_ int, err error) {
			if err != nil {
				b.Error(err)
			}
			<-window
			wg.Done()
		}
		batch := make(driver.Batch, benchBatch)
		for i := range batch {
			batch[i].Body = benchBody
		}
		for range benchMessages / benchBatch {
			for range benchBatch {
				window <- struct{}{}
			}
			p.Send(ctx, batch, done)
		}
		wg.Wait()
	}))
}

func BenchmarkConsume(b *testing.B) {
	f := newFixture(b, benchURL(b))
	topic := f.topic(b, benchPartitions)
	fill(b, f, topic, benchMessages)
	groups := 0
	group := func() string { groups++; return fmt.Sprintf("%s-%d", topic, groups) }
	ctx := context.Background()

	// Both have received a message before the clock starts, so that joining the group is not measured.
	compare(b, benchMessages-1, func() (_, _ func()) {
		cl, err := kgo.NewClient(
			kgo.SeedBrokers(hosts(f)...), kgo.ConsumerGroup(group()), kgo.ConsumeTopics(topic),
			kgo.AutoCommitMarks(), kgo.AutoCommitInterval(250*time.Millisecond), kgo.FetchMaxWait(500*time.Millisecond),
			kgo.BrokerMaxReadBytes(1<<30),
		)
		if err != nil {
			b.Fatal(err)
		}
		cl.PollRecords(ctx, 1)
		return func() {
			for n := 1; n < benchMessages; {
				fetches := cl.PollRecords(ctx, 1000)
				if err := fetches.Err(); err != nil {
					b.Fatal(err)
				}
				records := fetches.Records()
				n += len(records)
				cl.MarkCommitRecords(records...)
			}
		}, cl.Close
	}, func() (_, _ func()) {
		c := f.consumer(b, topic, group(), func(c *driver.ConsumerConfig) { c.Start, c.Prefetch = driver.StartEarliest, 1000 })
		if err := c.Settle(ctx, take(b, c, 1), driver.Ack); err != nil {
			b.Fatal(err)
		}
		return drain(b, c, benchMessages-1), func() { _ = c.Close(ctx) }
	})
}

// BenchmarkShare gives both the same size of fetches, which are made when there is room for their messages.
func BenchmarkShare(b *testing.B) {
	const fetch = 500
	f := shared(b)
	topic := f.topic(b, benchPartitions)
	fill(b, f, topic, benchMessages/5)
	groups := 0
	group := func() string { groups++; return fmt.Sprintf("%s-%d", topic, groups) }
	ctx := context.Background()

	compare(b, benchMessages/5-1, func() (_, _ func()) {
		name := group()
		if err := f.conn.(*conn).anchorShare(ctx, topic, name, driver.StartEarliest); err != nil { //nolint:forcetypeassert // it is ours
			b.Fatal(err)
		}
		cl, err := kgo.NewClient(
			kgo.SeedBrokers(hosts(f)...), kgo.ShareGroup(name), kgo.ConsumeTopics(topic), kgo.ShareMaxRecords(fetch),
			kgo.ShareMaxRecordsStrict(), kgo.FetchMaxWait(100*time.Millisecond),
		)
		if err != nil {
			b.Fatal(err)
		}
		cl.MarkAcks(kgo.AckAccept, cl.PollRecords(ctx, 1).Records()...)
		return func() {
			for n := 1; n < benchMessages/5; {
				fetches := cl.PollRecords(ctx, fetch)
				if err := fetches.Err(); err != nil {
					b.Fatal(err)
				}
				records := fetches.Records()
				n += len(records)
				cl.MarkAcks(kgo.AckAccept, records...)
			}
		}, cl.Close
	}, func() (_, _ func()) {
		c := f.consumer(b, topic, group(), func(c *driver.ConsumerConfig) { c.Start, c.Prefetch = driver.StartEarliest, 4*fetch })
		if err := c.Settle(ctx, take(b, c, 1), driver.Ack); err != nil {
			b.Fatal(err)
		}
		return drain(b, c, benchMessages/5-1), func() { _ = c.Close(ctx) }
	})
}

// fill sends n messages to a topic.
func fill(b *testing.B, f *fixture, topic string, n int) {
	b.Helper()
	p := f.producer(b, topic, nil)
	batch := make(driver.Batch, 1000)
	for i := range batch {
		batch[i].Body = benchBody
	}
	for range n / len(batch) {
		f.send(b, p, batch)
	}
}

// drain receives and settles n messages.
func drain(b *testing.B, c driver.Consumer, n int) func() {
	b.Helper()
	return func() {
		received := make(driver.Batch, 1000)
		for left := n; left > 0; {
			m, err := c.Receive(context.Background(), received)
			if err != nil {
				b.Fatal(err)
			}
			left -= m
			if err := c.Settle(context.Background(), received[:m], driver.Ack); err != nil {
				b.Fatal(err)
			}
		}
	}
}
