package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// heapInUse returns how many bytes are in use after everything unused was collected.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //gosec:disable G115 -- bytes of memory
}

// A topic with a producer and a consumer, five messages a second and latencies from 20 µs to 20 ms takes less than 3 MB after
// ten minutes, on a machine of many CPUs too.
func TestTopics_LittleTraffic_HeapBelow3MB(t *testing.T) {
	const (
		topics  = 100
		minutes = 10
		each    = 300 // messages a minute
		most    = 3_000_000
	)
	synctest.Test(t, func(t *testing.T) {
		before := heapInUse()
		broker := memory.New(memory.Config{Name: fmt.Sprintf("memory%d", addresses.Add(1))})
		driver.Register(broker.Driver())
		address, err := driver.ParseURL(broker.URL(), nil)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := address.Open(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		run := NewRun("", 0)
		run.Meter = newMeter(mostShards)
		collector := run.NewCollector()
		defer func() {
			if err := errors.Join(run.Finish(context.Background(), Drain{Limit: time.Minute}), conn.Close(context.Background())); err != nil {
				t.Error(err)
			}
		}()
		type ends struct{ producer, consumer *Series }
		var all []ends
		for i := range topics {
			name := fmt.Sprintf("topic-%d", i)
			if err := conn.(driver.Admin).CreateTopic(t.Context(), driver.TopicSpec{Name: name, Partitions: 1, Replicas: 1}); err != nil {
				t.Fatal(err)
			}
			labels := Labels{Broker: address.String(), Driver: address.Driver.Name, Topic: name}
			e := ends{producer: run.Series(labels)}
			labels.Group = "workers"
			e.consumer = run.Series(labels)
			all = append(all, e)
			topic := run.Topic(address, name)
			pub, err := run.NewPublisher(t.Context(), conn, topic, driver.ProducerConfig{Topic: name, Window: 4096})
			if err != nil {
				t.Fatal(err)
			}
			pub.NewSender(StampInBody, e.producer)
			if _, err := run.NewConsumer(t.Context(), conn, topic, driver.ConsumerConfig{Topic: name, Group: "workers", Prefetch: 1000, Start: driver.StartNew}, e.consumer); err != nil {
				t.Fatal(err)
			}
		}
		random := rand.New(rand.NewPCG(1, 1))
		latency := func() int64 { return int64(float64(time.Millisecond) * math.Exp(1.2*random.NormFloat64()-0.5)) }
		for range minutes {
			time.Sleep(time.Minute)
			for _, e := range all {
				for n := range uint32(each) {
					for _, trend := range []recording.Trend{recording.PublishLatency, recording.PublishTime, recording.ScheduleLag, recording.GeneratorLag} {
						e.producer.record(n, recording.Open, trend, driver.Now(), latency())
					}
					for _, trend := range []recording.Trend{recording.E2ELatency, recording.E2ETime, recording.DeliveryWait, recording.SettleTime} {
						e.consumer.record(n, recording.Open, trend, driver.Now(), latency())
					}
				}
			}
			collector.Collect()
		}
		used := (heapInUse() - before) / topics
		t.Logf("%d bytes a topic", used)
		if used > most {
			t.Errorf("a topic takes %d bytes of heap, want at most %d", used, most)
		}
		runtime.KeepAlive(collector)
	})
}
