package nats

import (
	"errors"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestStreamProducer_NoResponders_NotFoundUnlessMessagesWereStored(t *testing.T) {
	c, a := open(t, "embedded:")
	topic := unique("keeper")
	create := func() {
		t.Helper()
		spec := driver.TopicSpec{Name: topic, Partitions: 1, Replicas: 1, Options: values(t, a, driver.OnTopic, map[string]any{"storage": "memory"})}
		if err := createTopic(within(t), c.(driver.Admin), spec); err != nil {
			t.Fatal(err)
		}
	}
	p, err := c.NewProducer(within(t), driver.ProducerConfig{Topic: topic, Window: 1, Options: values(t, a, driver.OnProducer, nil)})
	if err != nil {
		t.Fatal(err)
	}
	send := func() (err error) {
		done := make(chan error, 1)
		p.Send(within(t), driver.Batch{{Body: []byte("x")}}, func(_ int, err error) { done <- err })
		return <-done
	}
	if err := send(); classify(err) != driver.NotFound {
		t.Errorf("a stream that never was: %v", err)
	}
	create()
	if err := send(); err != nil {
		t.Fatal(err)
	}
	if err := c.(driver.Admin).DeleteTopic(within(t), topic); err != nil {
		t.Fatal(err)
	}
	if err := send(); !errors.Is(err, errNoLeader) || classify(err) != driver.Disconnected {
		t.Errorf("a stream that is deleted: %v", err)
	}
	create()
	if err := send(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(p.Close(within(t)), c.(driver.Admin).DeleteTopic(within(t), topic)); err != nil {
		t.Error(err)
	}
}
