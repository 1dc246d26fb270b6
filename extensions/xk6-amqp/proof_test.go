package amqp_test

import (
	"os"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestWhatAConfirmationProves(t *testing.T) {
	r := newRig(t, os.Getenv("BROKER_URL_RABBITMQ"))
	for _, c := range []struct {
		queue, producer map[string]any
		elsewhere       bool // another test created the queue
		want            driver.Confirm
		how             string
	}{
		{want: driver.Accepted, how: "a durable classic queue, persistent messages"},
		{producer: map[string]any{"persistent": false}, want: driver.Accepted, how: "messages not persistent"},
		{queue: map[string]any{"durable": false}, want: driver.Accepted, how: "not durable"},
		{queue: map[string]any{"queueType": "quorum"}, want: driver.Replicated, how: "a majority of the quorum queue's members"},
		{queue: map[string]any{"queueType": "quorum"}, elsewhere: true, want: driver.Accepted, how: "this test did not create"},
		{queue: map[string]any{"queueType": "quorum"}, producer: map[string]any{"exchange": "amq.topic"}, want: driver.Accepted, how: "each queue that the exchange"},
	} {
		options, err := r.address.Resolve(driver.OnTopic, c.queue)
		r.must(err)
		created := &driver.TopicSpec{Name: unique(), Partitions: 1, Replicas: 1, Options: options}
		if c.elsewhere {
			created = nil
		}
		sending, err := r.address.Resolve(driver.OnProducer, c.producer)
		r.must(err)
		got := r.conn.(driver.Prover).Proof(r.context(), driver.ProducerConfig{Topic: "orders", Window: 1, Options: sending}, created)
		if got.Confirm != c.want || !strings.Contains(got.How, c.how) {
			t.Errorf("%+v: %v: %q", c, got.Confirm, got.How)
		}
	}
}
