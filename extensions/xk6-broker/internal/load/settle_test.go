package load

import (
	"context"
	"fmt"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// ready is a consumer whose messages are there, as many as are asked for.
type ready struct {
	driver.Consumer
	messages driver.Batch
}

func (r ready) Receive(_ context.Context, b driver.Batch) (int, error) {
	return copy(b, r.messages), nil
}
func (ready) Settle(context.Context, driver.Batch, driver.Outcome) error { return nil }

// What the accounting of a message takes from the driver's Receive to its settlement.
func BenchmarkReceiveHandOverSettle(b *testing.B) {
	const size = 100
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
	pub, err := run.NewPublisher(b.Context(), conn, topic, driver.ProducerConfig{Topic: "orders", Window: size})
	if err != nil {
		b.Fatal(err)
	}
	s := pub.NewSender(StampInBody, series)
	c, err := run.NewConsumer(b.Context(), conn, topic, driver.ConsumerConfig{Topic: "orders", Group: "workers", Prefetch: size, Start: driver.StartNew}, series)
	if err != nil {
		b.Fatal(err)
	}
	messages := make(driver.Batch, size)
	for i := range messages {
		messages[i] = driver.Message{Body: make([]byte, StampSize), Attempt: 1}
	}
	c.consumer = ready{c.consumer, messages}
	in := NewBuffer(size)
	b.ReportAllocs()
	for b.Loop() {
		for i := range messages {
			seq := s.track.Next()
			s.track.Expect(seq)
			stamp := Stamp{Run: run.ID, Producer: s.id, Sequence: seq, Due: 1, Sent: 1}
			stamp.put(messages[i].Body, nil)
		}
		got, err := c.Receive(b.Context(), in)
		if err != nil {
			b.Fatal(err)
		}
		c.HandOver(in, got)
		if err := c.Settle(b.Context(), in, 0, got, driver.Ack); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/message")
}
