package nats

import (
	"errors"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A stream that has kept messages and does not answer has lost its leader, as far as its producer knows, until the server says that it is
// gone. One that has never answered is not there.
func TestAStreamThatDoesNotAnswer(t *testing.T) {
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
		t.Errorf("the first that is not answered: %v", err)
	}
	gone := time.Now().Add(patience)
	for err = send(); classify(err) != driver.NotFound && time.Now().Before(gone); err = send() {
	}
	if classify(err) != driver.NotFound {
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
