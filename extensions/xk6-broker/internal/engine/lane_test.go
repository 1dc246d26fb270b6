package engine

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Two loops at a time have a distribution each, and so has one that comes later; the series has all of them.
func TestEachLoopHasItsOwnLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := func(n int64) time.Duration { return time.Duration(n+1) * time.Millisecond }
		b := newBench(t, memory.Config{Service: service})
		defer b.finish()
		whole := &hist.Histogram{}
		var mu sync.Mutex
		loop := func(count uint64) {
			lane := b.series.Lane(1)
			pub, err := b.run.NewPublisher(t.Context(), b.conn, b.topic, driver.ProducerConfig{Topic: "orders", Window: 1})
			if err != nil {
				t.Error(err)
				return
			}
			s := pub.NewSender(StampInBody, lane.Series)
			if _, err := (Produce{Count: count, Payload: payload.Spec{Size: payload.Fixed(100)}}).Run(t.Context(), []*Sender{s}); err != nil {
				t.Error(err)
			}
			of := lane.End()
			h := of.Of(recording.Closed, recording.PublishLatency)
			if h.Count() != count || of.Of(recording.Open, recording.PublishLatency).Count() != 0 || lane.End() != (Distributions{}) {
				t.Errorf("a loop of %d messages has %d latencies", count, h.Count())
			}
			mu.Lock()
			defer mu.Unlock()
			whole.Merge(h)
		}
		var both sync.WaitGroup
		for _, count := range []uint64{300, 500} {
			both.Go(func() { loop(count) })
		}
		both.Wait()
		loop(200)
		if n := len(b.series.lanes.all); n != 2 {
			t.Errorf("%d lanes for two loops at a time", n)
		}
		sameText(t, "the loops together", whole, b.series.Trend(recording.Closed, recording.PublishLatency))
		if n := b.series.Count(recording.Confirmed); n != 1000 {
			t.Errorf("the series counts %d", n)
		}
	})
}

// sameText compares two distributions, whole, as they are written.
func sameText(t *testing.T, name string, got, want *hist.Histogram) {
	t.Helper()
	g, err := got.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	w, err := want.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if string(g) != string(w) {
		t.Errorf("%s: %d values from %d to %d, want %d from %d to %d", name, got.Count(), got.Min(), got.Max(), want.Count(), want.Min(), want.Max())
	}
}

func BenchmarkProduce(b *testing.B) {
	broker := memory.New(memory.Config{Name: fmt.Sprintf("memory%d", addresses.Add(1))})
	driver.Register(broker.Driver())
	address, err := driver.ParseURL(broker.URL(), nil)
	if err != nil {
		b.Fatal(err)
	}
	conn, err := address.Open(b.Context(), "test")
	if err != nil {
		b.Fatal(err)
	}
	if err := conn.(driver.Admin).CreateTopic(b.Context(), driver.TopicSpec{Name: "orders", Partitions: 1, Replicas: 1}); err != nil {
		b.Fatal(err)
	}
	run := NewRun("", 0)
	topic := run.Topic(address, "orders")
	series := run.Series(Labels{Broker: address.String(), Driver: address.Driver.Name, Topic: "orders"})
	pub, err := run.NewPublisher(b.Context(), conn, topic, driver.ProducerConfig{Topic: "orders", Window: 1000})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	if _, err := (Produce{Count: uint64(b.N), Payload: payload.Spec{Size: payload.Fixed(100)}}).Run(b.Context(), []*Sender{pub.NewSender(StampInBody, series)}); err != nil {
		b.Fatal(err)
	}
}
