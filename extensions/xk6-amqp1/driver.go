package amqp1

import (
	"context"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func init() {
	queues := driver.Features{
		Order:           driver.PerTopic,
		Confirm:         driver.Accepted,
		Deliver:         driver.AtLeastOnce,
		Settle:          driver.Ack | driver.Requeue | driver.Reject,
		Start:           driver.StartEarliest,
		SettleConfirmed: driver.OnRequest,
		Async:           true,
		Key:             true,
		Headers:         true,
		Attempts:        true,
	}
	driver.Register(driver.Driver{
		Name:    "amqp1",
		Schemes: []string{"amqp1", "amqp1+tls"},
		Doc: "Queues over AMQP 1.0, of Artemis, RabbitMQ 4, Qpid, Azure Service Bus and others: a topic is a queue " +
			"(anycast), which is one shared flow.",
		Features: queues,
		Options:  slices.Concat(connectOptions(), messageOptions(), consumeOptions(), topicOptions()),
		Open:     queue.open,
		Classify: classify,
	})

	groups := queues
	groups.Start = driver.StartNew
	groups.Groups, groups.Fanout = true, true
	driver.Register(driver.Driver{
		Name:    "amqp1-pubsub",
		Schemes: []string{"amqp1-pubsub", "amqp1-pubsub+tls"},
		Doc: "Topics over AMQP 1.0 (multicast): " +
			"each group is a subscription, durable and shared by its consumers.",
		Features: groups,
		Options:  slices.Concat(connectOptions(), messageOptions(), consumeOptions(), subscribeOptions()),
		Open:     pubsub.open,
		Classify: classify,
	})
}

// mode is one of the drivers of this package.
type mode uint8

const (
	queue  mode = iota // a message goes to one consumer
	pubsub             // a message goes to every subscription
)

// capability is the name of a mode in AMQP's bindings of JMS. Some brokers ignore it.
func (m mode) capability() string {
	if m == pubsub {
		return "topic"
	}
	return "queue"
}

func (m mode) open(ctx context.Context, t driver.Target) (driver.Conn, error) { return open(ctx, t, m) }

// The optional interfaces of the drivers: a method with a wrong signature must not compile.
var (
	_ driver.Admin      = &conn{}
	_ driver.Backlogger = &conn{}
	_ driver.Informer   = &conn{}
	_ driver.Prover     = &conn{}
	_ driver.Unwrapper  = &conn{}
)
