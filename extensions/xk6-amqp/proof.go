package amqp

import (
	"cmp"
	"context"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Proof implements [driver.Prover]. AMQP does not tell what a queue is: it is known where this test has declared it, which RabbitMQ refuses
// for a queue that is another one. Nor does it tell how many members a replicated queue has.
func (c *conn) Proof(ctx context.Context, p driver.ProducerConfig, created *driver.TopicSpec) driver.Proof {
	r := c.route(p)
	proof := c.proof(ctx, p, r, created)
	proof.Routed = r.mayMiss(created)
	return proof
}

// route is where a producer's messages go.
type route struct {
	topic    string
	isTopic  bool   // the exchange is the topic
	exchange string // "" is the default exchange, whose keys are names of queues
	key      string // of messages that have none of their own
	given    bool   // the key is an option's
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

// mayMiss reports whether messages may go past the topic, or past some of its groups, because of their keys.
func (r route) mayMiss(created *driver.TopicSpec) bool {
	switch {
	case r.exchange == "":
		return r.key != r.topic
	case created == nil || !r.isTopic && created.Options.String("exchange") != r.exchange: // the type of the exchange is not known
		return r.given || r.byKey
	}
	switch kind := created.Options.String("exchangeType"); {
	case kind == amqp.ExchangeFanout:
		return false
	case r.isTopic || r.byKey || kind != amqp.ExchangeDirect && kind != amqp.ExchangeTopic:
		return true
	}
	return !slices.ContainsFunc(bindings(created), func(b binding) bool { return b.key == r.key })
}

func (c *conn) proof(ctx context.Context, p driver.ProducerConfig, r route, created *driver.TopicSpec) driver.Proof {
	accepted := func(how string) driver.Proof { return driver.Proof{Confirm: driver.Accepted, How: how} }
	switch {
	case r.exchange != "":
		return accepted("each queue that the exchange routed it to")
	case r.key != r.topic:
		return accepted("the queue that the routing key names, of a kind that RabbitMQ does not tell")
	case created == nil:
		return accepted("a queue of a kind that RabbitMQ does not tell, as this test did not create it")
	}
	switch c.likeness(ctx, created) {
	case another:
		return accepted("a queue of a kind that RabbitMQ does not tell, which is not as this test created it")
	case unknown:
		return accepted("a queue of a kind that RabbitMQ does not tell, and does not let this user compare with what this test created")
	}
	switch {
	case created.Replicas < 2 && (c.mode == stream || created.Options.String("queueType") == amqp.QueueTypeQuorum):
		return accepted("a replicated queue of one member")
	case c.mode == stream:
		return c.majority("stream")
	case created.Options.String("queueType") == amqp.QueueTypeQuorum:
		return c.majority("quorum queue")
	case !created.Options.Bool("durable"):
		return accepted("a classic queue that is not durable")
	case !p.Options.Bool("persistent"):
		return accepted("a durable classic queue, messages not persistent")
	}
	return accepted("a durable classic queue, persistent messages")
}

// majority is what a replicated queue proves that was asked to have several members. RabbitMQ takes it as it is where there are not as many
// nodes, and does not tell: that there is more than one is known where the URL names them.
func (c *conn) majority(of string) driver.Proof {
	p := driver.Proof{Confirm: driver.Accepted, How: "a majority of the " + of + "'s members, perhaps the only one: the URL names one node"}
	if len(c.hosts) > 1 {
		p = driver.Proof{Confirm: driver.Replicated, How: "a majority of the " + of + "'s members, whose number RabbitMQ does not tell"}
	}
	return p
}
