package amqp1

import (
	"context"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover]. The outcome "accepted" says that the broker is responsible for the message from then on, and AMQP has no word for how
// many copies of it there are, or whether it is on a disk. A broker that restarts forgets a durable message too, where its queue is not durable.
func (c *conn) Proof(ctx context.Context, p driver.ProducerConfig, created *driver.TopicSpec) driver.Proof {
	accepted := func(how string) driver.Proof {
		return driver.Proof{Confirm: driver.Accepted, How: "the broker accepted it, " + how}
	}
	if !p.Options.Bool("persistent") {
		return accepted("and may forget it when it restarts (persistent=false)")
	}
	if c.mode == pubsub {
		return accepted("as a durable message")
	}
	switch durable, known := c.durable(ctx, p.Topic, created); {
	case !known:
		return accepted("as a durable message; whether the queue is durable it does not tell")
	case !durable:
		return accepted("and forgets it when it restarts: the queue is not durable (durable=false)")
	}
	return accepted("as a durable message in a durable queue")
}

// durable reports whether a queue outlives a restart of the broker: Artemis says so of any, and RabbitMQ made it as this test asked, or refused to.
func (c *conn) durable(ctx context.Context, topic string, created *driver.TopicSpec) (is, known bool) {
	if c.management == nil || c.options.String("address") != "" {
		return false, false
	}
	if a, ok := c.management.(*artemis); ok {
		if is, err := a.durable(ctx, topic); err == nil {
			return is, true
		}
	}
	if created == nil {
		return false, false
	}
	return created.Options.Bool("durable"), true
}
