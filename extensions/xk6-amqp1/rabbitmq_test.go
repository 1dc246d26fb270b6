package amqp1_test

import (
	"os"
	"sync"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Consumers of one group that come at the same time, each over a connection of its own, all declare its queue: RabbitMQ 4.0 fails over some of that.
func TestMembersOfAGroupThatComeTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	at := os.Getenv("BROKER_RABBITMQ4")
	if at == "" {
		t.Skip("no BROKER_RABBITMQ4")
	}
	first := rigAt(t, "amqp1-pubsub://"+at)
	for range 5 {
		topic := first.topic()
		var rigs [8]*rig
		for i := range rigs {
			rigs[i] = rigAt(t, "amqp1-pubsub://"+at)
		}
		errs := make([]error, len(rigs))
		var all sync.WaitGroup
		for i, r := range rigs {
			options := r.values(driver.OnConsumer, nil)
			all.Go(func() {
				var c driver.Consumer
				config := driver.ConsumerConfig{Topic: topic, Group: "together", Prefetch: 10, Start: driver.StartNew, Options: options}
				if c, errs[i] = r.conn.NewConsumer(t.Context(), config); errs[i] == nil {
					errs[i] = c.Close(t.Context())
				}
			})
		}
		all.Wait()
		for _, err := range errs {
			first.must(err)
		}
	}
}
