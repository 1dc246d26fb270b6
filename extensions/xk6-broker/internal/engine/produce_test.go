package engine

import (
	"fmt"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
)

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
