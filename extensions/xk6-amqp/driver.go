package amqp

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func init() {
	queues := driver.Features{
		Order:           driver.PerTopic,
		Confirm:         driver.Replicated,
		Deliver:         driver.AtLeastOnce,
		Settle:          driver.Ack | driver.Requeue | driver.Reject,
		Start:           driver.StartEarliest,
		SettleConfirmed: driver.Never,
		Async:           true,
		Groups:          true,
		Headers:         true,
		Attempts:        true,
		Requests:        true,
		BacklogWhole:    true,
		HeldUnseen:      true,
		MaxMessageBytes: 16 << 20,
	}
	driver.Register(driver.Driver{
		Name:    "rabbitmq",
		Schemes: []string{"rabbitmq", "amqp", "amqps", "rabbitmq+tls"},
		Doc: "RabbitMQ queues, classic or quorum, over AMQP 0-9-1 with publisher confirms. A topic is a queue. " +
			"All consumers of the queue share its messages, so it has one group.",
		Features: queues,
		Options: slices.Concat(
			connectOptions(), produceOptions(true), messageOptions(), routeOptions(), []driver.Option{priorityOption()},
			queueOptions(driver.OnTopic),
		),
		Open:     queue.open,
		Classify: classify,
	})

	groups := queues
	groups.Confirm = driver.Accepted
	groups.Start = driver.StartNew
	groups.Fanout = true
	driver.Register(driver.Driver{
		Name:    "rabbitmq-pubsub",
		Schemes: []string{"rabbitmq-pubsub", "rabbitmq-pubsub+tls"},
		Doc: "RabbitMQ exchanges over AMQP 0-9-1 with publisher confirms: a topic is an exchange, and each group a " +
			"queue bound to it.",
		Features: groups,
		Options: slices.Concat(
			connectOptions(), produceOptions(false), messageOptions(), exchangeOptions(),
			[]driver.Option{priorityOption()}, queueOptions(driver.OnConsumer),
		),
		Open:     pubsub.open,
		Classify: classify,
	})

	streams := queues
	streams.Confirm = driver.Replicated
	streams.Deliver = driver.AtMostOnce
	streams.Settle = driver.Ack
	streams.Start = driver.StartNew | driver.StartEarliest
	streams.Replay, streams.Fanout = true, true
	streams.Groups, streams.Attempts = false, false
	streams.BacklogWhole, streams.HeldUnseen = false, false
	streams.Position = driver.Offset
	driver.Register(driver.Driver{
		Name:    "rabbitmq-stream",
		Schemes: []string{"rabbitmq-stream", "rabbitmq-stream+tls"},
		Doc: "RabbitMQ streams over AMQP 0-9-1 with publisher confirms: a topic is a replicated log that every " +
			"consumer reads for itself.",
		Features: streams,
		Options: slices.Concat(
			connectOptions(), produceOptions(true), messageOptions(), routeOptions(), streamOptions(),
		),
		Open:     stream.open,
		Classify: classify,
		Place:    streamPlace,
	})
}
