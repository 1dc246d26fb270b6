package amqp_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

const (
	benchMessages = 10_000
	benchWindow   = 1000
	benchBytes    = 100
	benchRounds   = 31
)

// BenchmarkAgainstRaw runs hand-written loops of the client library and the driver in turn on the same queue, and reports the
// driver's rate and the median of the ratios of each pair; 1 is as fast as raw.
func BenchmarkAgainstRaw(b *testing.B) {
	for _, kind := range []string{"classic", "quorum"} {
		b.Run(kind, func(b *testing.B) {
			address := server(b, "amqp")
			r := newRig(b, server(b, "rabbitmq"))
			topic := r.topic(map[string]any{"queueType": kind})
			raw, err := amqp091.Dial(plain(b, address))
			r.must(err)
			defer func() { r.must(raw.Close()) }()
			var published, consumed ratios
			for round := range max(b.N, benchRounds) {
				var publishing, consuming [2]cost
				for turn := range 2 {
					who := (round + turn) % 2 // whoever publishes consumes what it published: both find the queue empty
					if who == 0 {
						publishing[who], consuming[who] = rawPublish(r, raw, topic), rawConsume(r, raw, topic)
					} else {
						publishing[who], consuming[who] = publish(r, topic), consume(r, topic)
					}
				}
				published.add(publishing[0], publishing[1])
				consumed.add(consuming[0], consuming[1])
			}
			published.report(b, "publish")
			consumed.report(b, "consume")
		})
	}
}

// plain is the URL without the query that the client library does not know.
func plain(b *testing.B, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		b.Fatal("the URL is malformed")
	}
	u.RawQuery = ""
	return u.String()
}

// cost is what benchMessages took: time, and processor time of this process, which a busy machine blurs less.
type cost struct{ time, cpu time.Duration }

func measured(tb testing.TB, f func()) cost {
	cpu, begin := processorTime(tb), time.Now()
	f()
	return cost{time.Since(begin), processorTime(tb) - cpu}
}

func processorTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type ratios struct{ rates, cpus, own, raw []float64 }

func (r *ratios) add(raw, own cost) {
	r.rates = append(r.rates, raw.time.Seconds()/own.time.Seconds())
	r.cpus = append(r.cpus, own.cpu.Seconds()/raw.cpu.Seconds())
	r.own = append(r.own, benchMessages/own.time.Seconds())
	r.raw = append(r.raw, benchMessages/raw.time.Seconds())
}

func (r *ratios) report(b *testing.B, what string) {
	median := func(values []float64) float64 {
		slices.Sort(values)
		return values[len(values)/2]
	}
	b.ReportMetric(median(r.rates), what+"/raw")
	b.ReportMetric(median(r.cpus), what+"-cpu/raw")
	b.ReportMetric(median(r.own), what+"/s")
	b.ReportMetric(median(r.raw), "raw-"+what+"/s")
	b.ReportMetric(0, "ns/op")
}

func rawPublish(r *rig, c *amqp091.Connection, topic string) cost {
	ch, err := c.Channel()
	r.must(err)
	defer func() { r.must(ch.Close()) }()
	r.must(ch.Confirm(false))
	body := make([]byte, benchBytes)
	window := make(chan *amqp091.DeferredConfirmation, benchWindow)
	var confirmed sync.WaitGroup
	return measured(r, func() {
		confirmed.Go(func() {
			for range benchMessages {
				if dc := <-window; !dc.Wait() {
					panic("not confirmed")
				}
			}
		})
		for range benchMessages {
			dc, err := ch.PublishWithDeferredConfirm("", topic, true, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, Body: body})
			r.must(err)
			window <- dc
		}
		confirmed.Wait()
	})
}

func publish(r *rig, topic string) cost {
	p, err := r.conn.NewProducer(r.context(), driver.ProducerConfig{Topic: topic, Window: benchWindow, Options: r.produceOptions(nil)})
	r.must(err)
	defer func() { r.must(p.Close(r.context())) }()
	ctx := context.Background()
	body := make([]byte, benchBytes)
	window := make(chan struct{}, benchWindow)
	var outstanding sync.WaitGroup
	outstanding.Add(benchMessages)
	done := func(_ int, err error) {
		if err != nil {
			panic(fmt.Sprint("not confirmed: ", err))
		}
		<-window
		outstanding.Done()
	}
	return measured(r, func() {
		for range benchMessages {
			window <- struct{}{}
			p.Send(ctx, driver.Batch{{Body: body}}, done)
		}
		outstanding.Wait()
	})
}

// rawConsume acks every hundred, as PerfTest's multi-ack does.
func rawConsume(r *rig, c *amqp091.Connection, topic string) cost {
	var ch *amqp091.Channel
	defer func() { r.must(ch.Close()) }()
	return measured(r, func() {
		var err error
		ch, err = c.Channel()
		r.must(err)
		r.must(ch.Qos(benchWindow, 0, false))
		deliveries, err := ch.Consume(topic, "", false, false, false, false, nil)
		r.must(err)
		for i := range benchMessages {
			d := <-deliveries
			if i%100 == 99 {
				r.must(d.Ack(true))
			}
		}
	})
}

func consume(r *rig, topic string) cost {
	values, err := r.address.Resolve(driver.OnConsumer, nil)
	r.must(err)
	var c driver.Consumer
	defer func() { r.must(c.Close(r.context())) }()
	return measured(r, func() {
		c, err = r.conn.NewConsumer(r.context(), driver.ConsumerConfig{Topic: topic, Prefetch: benchWindow, Start: driver.StartEarliest, Options: values})
		r.must(err)
		b := make(driver.Batch, 100)
		ctx := context.Background()
		for got := 0; got < benchMessages; {
			n, err := c.Receive(ctx, b[:min(len(b), benchMessages-got)])
			r.must(err)
			r.must(c.Settle(ctx, b[:n], driver.Ack))
			got += n
		}
	})
}
