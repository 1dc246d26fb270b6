package amqp

import (
	"context"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover]. AMQP does not tell what a queue is: it is known where this test has declared it, which RabbitMQ refuses
// for a queue that is another one. Nor does it tell how many members a replicated queue has.
func (c *conn) Proof(_ context.Context, p driver.ProducerConfig, created *driver.TopicSpec) driver.Proof {
	proof := c.proof(p, created)
	proof.Routed = p.Options.Bool("routeByKey")
	return proof
}

func (c *conn) proof(p driver.ProducerConfig, created *driver.TopicSpec) driver.Proof {
	exchange := p.Options.String("exchange")
	if c.mode == pubsub {
		exchange = p.Topic
	}
	switch {
	case exchange != "":
		return driver.Proof{Confirm: driver.Accepted, How: "each queue that the exchange routed it to"}
	case c.mode == stream:
		return driver.Proof{Confirm: driver.Replicated, How: "a majority of the stream's members, whose number RabbitMQ does not tell"}
	case created == nil:
		return driver.Proof{Confirm: driver.Accepted, How: "a queue of a kind that RabbitMQ does not tell, as this test did not create it"}
	case created.Options.String("queueType") == "quorum":
		return driver.Proof{Confirm: driver.Replicated, How: "a majority of the quorum queue's members, whose number RabbitMQ does not tell"}
	case !created.Options.Bool("durable"):
		return driver.Proof{Confirm: driver.Accepted, How: "a classic queue that is not durable"}
	case !p.Options.Bool("persistent"):
		return driver.Proof{Confirm: driver.Accepted, How: "a durable classic queue, messages not persistent"}
	}
	return driver.Proof{Confirm: driver.Accepted, How: "a durable classic queue, persistent messages"}
}
