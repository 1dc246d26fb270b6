package engine

import (
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// reorderingBench is a bench whose driver has priorities and delays.
func reorderingBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, memory.Config{})
	d := *b.topic.Address.Driver
	d.Options = append(d.Options,
		driver.Option{Name: "priority", Scope: driver.OnProducer | driver.OnMessage, Type: driver.Int, Default: "4", Reorders: true},
		driver.Option{Name: "delay", Scope: driver.OnProducer | driver.OnMessage, Type: driver.Duration, Reorders: true},
		driver.Option{Name: "priorities", Scope: driver.OnTopic, Type: driver.Int, Reorders: true})
	*b.topic.Address.Driver = d
	return b
}

func TestAccount_TopicWithoutOrder_ReorderedNotObserved(t *testing.T) {
	for name, c := range map[string]struct {
		message, producer, topic driver.Values
		requeue, unordered       bool
		timeout                  time.Duration
	}{
		"none":              {timeout: defaultDrainTimeout},
		"defaults":          {producer: driver.Values{"priority": int64(4), "delay": time.Duration(0)}, timeout: defaultDrainTimeout},
		"priority":          {message: driver.Values{"priority": int64(7)}, unordered: true, timeout: defaultDrainTimeout},
		"producer priority": {producer: driver.Values{"priority": int64(7)}, unordered: true, timeout: defaultDrainTimeout},
		"delay":             {message: driver.Values{"delay": 15 * time.Second}, unordered: true, timeout: defaultDrainTimeout + 15*time.Second},
		"producer delay":    {producer: driver.Values{"delay": time.Minute}, unordered: true, timeout: defaultDrainTimeout + time.Minute},
		"priority queue":    {topic: driver.Values{"priorities": int64(10)}, unordered: true, timeout: defaultDrainTimeout},
		"requeue":           {requeue: true, unordered: true, timeout: defaultDrainTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			b := reorderingBench(t)
			if c.topic != nil {
				b.topic.Created(driver.TopicSpec{Name: "orders", Options: c.topic})
			}
			consumer := b.consumer(driver.ConsumerConfig{Group: "workers"})
			pub, err := b.run.NewPublisher(t.Context(), b.conn, b.topic, driver.ProducerConfig{Topic: "orders", Window: 10, Options: c.producer})
			if err != nil {
				t.Fatal(err)
			}
			sent := make(chan struct{})
			pub.NewSender(StampInBody, b.series).Send(t.Context(), driver.Batch{{Body: make([]byte, StampSize), Properties: c.message}}, Timing{}, func([]Receipt) { close(sent) })
			<-sent
			in := b.receive(consumer, 1)
			if c.requeue {
				b.settle(consumer, in, 0, 1, driver.Requeue)
			}
			if a := b.only(); a.Unordered != c.unordered || b.run.DrainTimeout() != c.timeout {
				t.Errorf("unordered %v and timeout %v; want %v and %v", a.Unordered, b.run.DrainTimeout(), c.unordered, c.timeout)
			}
		})
	}
}
