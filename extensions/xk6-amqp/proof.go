package amqp

import (
	"cmp"
	"context"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover]. AMQP cannot describe a queue or count its members. The kind of
// a queue is that of its declaration if this test declared it.
func (c *conn) Proof(_ context.Context, p driver.ProducerConfig, created *driver.TopicSpec) driver.Proof {
	r := c.route(p)
	proof := c.proof(p, r, created)
	proof.Routed = r.mayMiss(created)
	return proof
}

// route is the way of a producer's messages.
type route struct {
	topic    string
	isTopic  bool   // the exchange is the topic
	exchange string // "" is the default exchange, whose keys are names of queues
	key      string // of messages without their own
	given    bool   // the key is set by an option
	byKey    bool   // messages' own keys route them
}

func (c *conn) route(p driver.ProducerConfig) route {
	key := p.Options.String("routingKey")
	r := route{
		topic: p.Topic, isTopic: c.mode == pubsub, exchange: p.Options.String("exchange"),
		key: cmp.Or(key, p.Topic), given: key != "", byKey: p.Options.Bool("routeByKey"),
	}
	if r.isTopic {
		r.exchange = p.Topic
	}
	r.byKey = r.byKey && r.exchange != ""
	return r
}

// mayMiss reports whether messages may miss the topic or some of its groups because of their keys.
func (r route) mayMiss(created *driver.TopicSpec) bool {
	switch {
	case r.exchange == "":
		return r.key != r.topic
	case created == nil || !r.isTopic && created.Options.String("exchange") != r.exchange:
		return r.given || r.byKey // the type of the exchange is not known
	}
	switch kind := created.Options.String("exchangeType"); {
	case kind == amqp.ExchangeFanout:
		return false
	case r.isTopic || r.byKey || kind != amqp.ExchangeDirect && kind != amqp.ExchangeTopic:
		return true
	}
	return !slices.Contains(bindingKeys(created), r.key)
}

func (c *conn) proof(p driver.ProducerConfig, r route, created *driver.TopicSpec) driver.Proof {
	accepted := func(how string) driver.Proof { return driver.Proof{Confirm: driver.Accepted, How: how} }
	switch {
	case r.exchange != "":
		return accepted("each queue that the exchange routed it to")
	case r.key != r.topic:
		return accepted("the queue that the routing key names, of an unknown kind")
	case created == nil:
		return accepted("a queue of an unknown kind, because this test did not create it")
	}
	quorum := created.Options.String("queueType") == amqp.QueueTypeQuorum
	switch {
	case created.Replicas < 2 && (c.mode == stream || quorum):
		return accepted("a replicated queue of one member")
	case c.mode == stream:
		return c.majority("stream")
	case quorum:
		return c.majority("quorum queue")
	case !created.Options.Bool("durable"):
		return accepted("a classic queue that is not durable")
	case !p.Options.Bool("persistent"):
		return accepted("a durable classic queue, messages not persistent")
	}
	return accepted("a durable classic queue, persistent messages")
}

// majority is the proof of a queue declared with several members. RabbitMQ makes fewer if there are
// not as many nodes, without an error, so the URL must name several.
func (c *conn) majority(kind string) driver.Proof {
	how := "a majority of the " + kind + "'s members, "
	if len(c.hosts) > 1 {
		return driver.Proof{Confirm: driver.Replicated, How: how + "whose number RabbitMQ does not return"}
	}
	return driver.Proof{Confirm: driver.Accepted, How: how + "perhaps the only one: the URL names one node"}
}
