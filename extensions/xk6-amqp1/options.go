package amqp1

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func connectOptions() []driver.Option {
	const on = driver.OnConnect
	return append(driver.ConnectOptions(), []driver.Option{
		{
			Name: "sasl", Scope: on, Type: driver.Enum, Default: "auto",
			Allowed: []string{"auto", "plain", "anonymous", "external"},
			Doc: "How to authenticate: by user and password (plain), as nobody (anonymous), or by the client's " +
				"certificate (external); auto is plain where there is a user, else anonymous.",
		},
		{
			Name: "idleTimeout", Scope: on, Type: driver.Duration, Default: "1m", Min: int64(time.Second),
			Max: int64(time.Hour),
			Doc: "How long the server may be silent before the connection is broken; the server is asked for a " +
				"sign of life in half of that.",
		},
		{
			Name: "timeout", Scope: on, Type: driver.Duration, Default: "30s", Min: int64(10 * time.Millisecond),
			Doc: "How long the answer to anything but a message may take, and one write to the network.",
		},
		{
			Name: "address", Scope: on,
			Doc: "The address of a topic, with {topic} in place of its name; where empty it is the name, and at " +
				"RabbitMQ /queues/{topic} or /exchanges/{topic}.",
		},
	}...)
}

// messageOptions are the fields of a message's header and properties.
func messageOptions() []driver.Option {
	const on = driver.OnMessage | driver.OnProducer
	return []driver.Option{
		{
			Name: "persistent", Scope: on, Type: driver.Bool, Default: "true", SendOnly: true,
			Doc: "Ask that the message outlives a restart of the broker (durable).",
		},
		{
			Name: "priority", Scope: on, Type: driver.Int, Default: "4", Max: 9, Reorders: true,
			Doc: "Priority of the message, the greater the sooner.",
		},
		{
			Name: "ttl", Scope: on, Type: driver.Duration, Step: int64(time.Millisecond),
			Max: int64(time.Millisecond) * (1<<32 - 1),
			Doc: "How long the message may wait before it expires; 0 is without end.",
		},
		{
			Name: "delay", Scope: on, Type: driver.Duration, Step: int64(time.Millisecond), SendOnly: true,
			Reorders: true,
			Doc:      "How long the broker keeps the message back: Artemis and Azure Service Bus do.",
		},
		{Name: "messageId", Scope: on, Doc: "Identifier of the message; some brokers drop a second one with the same."},
		{Name: "correlationId", Scope: on, Doc: "Identifier of what the message belongs to."},
		{Name: "subject", Scope: on, Doc: "What the message is about; at RabbitMQ its routing key."},
		{Name: "contentType", Scope: on, Doc: "MIME type of the body."},
		{Name: "contentEncoding", Scope: on, Doc: "Encoding of the body, such as gzip."},
		{
			Name: "typedHeaders", Scope: on, Type: driver.Map, SendOnly: true,
			Doc: "Application properties that are numbers or booleans to the broker, such as { price: 5 } for a " +
				"selector, beside the message's headers, which are strings.",
		},
		{
			Name: "groupId", Scope: on,
			Doc: "The group of messages (the session, at Azure Service Bus) that go to one consumer in order.",
		},
	}
}

func consumeOptions() []driver.Option {
	const on = driver.OnConsumer
	return []driver.Option{
		{
			Name: "requeue", Scope: on, Type: driver.Enum, Default: "modify",
			Allowed: []string{"modify", "elsewhere", "release"},
			Doc: "How nack gives a message back: as a delivery that failed, which counts (modify), so that this " +
				"consumer gets it no more (elsewhere), or as if it had not been delivered (release).",
		},
		{
			Name: "selector", Scope: on, Selects: true,
			Doc: "Which messages the consumer gets: a condition in the syntax of JMS on their headers and " +
				"properties, such as color = 'red'.",
		},
	}
}

func topicOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "durable", Scope: driver.OnTopic, Type: driver.Bool, Default: "true",
			Doc: "Whether the queue outlives a restart of the broker.",
		},
	}
}

// subscribeOptions are for the driver whose topics have subscriptions.
func subscribeOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "groupAddress", Scope: driver.OnConsumer,
			Doc: "The address of a group's subscription that is there already, with {topic} and {group} in place " +
				"of the names, such as {topic}/Subscriptions/{group} at Azure Service Bus.",
		},
	}
}
