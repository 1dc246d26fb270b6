package amqp

import (
	"strconv"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// maxMessage is the default of the option maxMessageBytes: that of RabbitMQ 4. Older versions
// accept 128 MiB.
const maxMessage = "16MiB"

// connectOptions are common to all drivers of this package.
func connectOptions() []driver.Option {
	const on = driver.OnConnect
	return append(driver.ConnectOptions(), []driver.Option{
		{
			Name: "sasl", Scope: on, Type: driver.Enum, Default: "plain", Allowed: []string{"plain", "external"},
			Doc: "How to authenticate: user and password of the URL, or the client's certificate.",
		},
		{
			Name: "heartbeat", Scope: on, Type: driver.Duration, Default: "10s", Min: int64(time.Second),
			Max: int64(time.Hour), Step: int64(time.Second),
			Doc: "Interval of heartbeats, whole seconds; a connection silent for one and a half of them is broken.",
		},
		{
			Name: "frameMax", Scope: on, Type: driver.Size, Default: "128KiB", Min: 4 << 10, Max: 16 << 20,
			Doc: "Largest frame in bytes; the server may ask for less.",
		},
	}...)
}

// produceOptions are common to all drivers of this package. A message without a queue is an error
// if a topic is a queue, but not if it is an exchange.
func produceOptions(mandatory bool) []driver.Option {
	const on = driver.OnProducer
	return []driver.Option{
		{
			Name: "mandatory", Scope: on, Type: driver.Bool, Default: strconv.FormatBool(mandatory),
			Doc: "Fail a message that no queue takes; without it the broker confirms such a message and drops it.",
		},
		{
			Name: "persistent", Scope: on, Type: driver.Bool, Default: "true",
			Doc: "Ask a durable classic queue to keep the message on disk (delivery mode 2); quorum queues and " +
				"streams always do.",
		},
		{
			Name: "blocked", Scope: on, Type: driver.Enum, Default: "wait", Allowed: []string{"wait", "fail"},
			Doc: "While the broker blocks publishing (connection.blocked): let messages wait, so that their " +
				"latency shows it, or fail each at once as throttled.",
		},
		{
			Name: "maxMessageBytes", Scope: on, Type: driver.Size, Default: maxMessage, Min: 1,
			Doc: "Refuse larger bodies in the client, because the broker would close the channel and fail all that " +
				"is in flight on it.",
		},
	}
}

// messageOptions are the properties of a message in AMQP.
func messageOptions() []driver.Option {
	const on = driver.OnMessage | driver.OnProducer
	return []driver.Option{
		{
			Name: "priority", Scope: on, Type: driver.Int, Max: 255, Reorders: true,
			Doc: "Priority of a message in a queue with maxPriority; 0 is none.",
		},
		{
			Name: "expiration", Scope: on, Type: driver.Duration, Step: int64(time.Millisecond),
			Doc: "How long a message may wait in a queue before it is dropped or dead-lettered; 0 is without end.",
		},
		{Name: "contentType", Scope: on, Type: driver.String, Doc: "MIME type of the body."},
		{Name: "contentEncoding", Scope: on, Type: driver.String, Doc: "Encoding of the body, such as gzip."},
		{
			Name: "correlationId", Scope: on, Type: driver.String,
			Doc: "Identifier of what a message belongs to; request() uses its own.",
		},
		{Name: "type", Scope: on, Type: driver.String, Doc: "What kind of message it is, for the application."},
		{Name: "appId", Scope: on, Type: driver.String, Doc: "Which application sent it."},
		{
			Name: "typedHeaders", Scope: on, Type: driver.Map, SendOnly: true,
			Doc: "Headers that are numbers or booleans to the broker, such as { 'x-delay': 500 }, beside the " +
				"message's headers, which are strings.",
		},
	}
}

// routeOptions are for the drivers whose producers may publish to any exchange.
func routeOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "exchange", Scope: driver.OnProducer | driver.OnTopic, Type: driver.String,
			Doc: "Exchange to publish to, and to create and bind with the topic; the default exchange, which leads " +
				"straight to the queue, where empty.",
		},
		{
			Name: "exchangeType", Scope: driver.OnTopic, Type: driver.String, Default: "direct",
			Doc: "Type of the exchange to create: direct, fanout, topic, headers, or a plugin's.",
		},
		exchangeArguments(),
		{
			Name: "bindings", Scope: driver.OnTopic, Type: driver.List,
			Doc: "Keys that bind the queue to the exchange, by default the topic's name. An existing queue keeps " +
				"its other bindings.",
		},
		{
			Name: "bindingArguments", Scope: driver.OnTopic, Type: driver.Map,
			Doc: "Arguments of these bindings, such as { 'x-match': 'all', type: 'create' } for an exchange of type " +
				"headers.",
		},
		{
			Name: "routingKey", Scope: driver.OnProducer, Type: driver.String,
			Doc: "Routing key of every message; the topic's name where empty.",
		},
		{
			Name: "routeByKey", Scope: driver.OnProducer, Type: driver.Bool,
			Doc: "Take a message's key as its routing key, where it has one and an exchange is named.",
		},
	}
}

func exchangeArguments() driver.Option {
	return driver.Option{
		Name: "exchangeArguments", Scope: driver.OnTopic, Type: driver.Map,
		Doc: "Arguments of the exchange to create, such as { 'x-delayed-type': 'direct' }.",
	}
}

// everyKey is the binding key that matches all keys in an exchange of type topic.
const everyKey = "#"

// exchangeOptions are for the driver whose topics are exchanges.
func exchangeOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "exchangeType", Scope: driver.OnTopic, Type: driver.String, Default: "fanout",
			Doc: "Type of the exchange to create: fanout, topic, direct, headers, or a plugin's.",
		},
		exchangeArguments(),
		{
			Name: "bindingKey", Scope: driver.OnConsumer, Type: driver.String, Default: everyKey, Selects: true,
			Doc: "Binding key of the consumer's queue to the exchange, for the types that have one.",
		},
		{
			Name: "bindingArguments", Scope: driver.OnConsumer, Type: driver.Map,
			Doc: "Arguments of that binding, such as { 'x-match': 'all', type: 'create' } of an exchange of type " +
				"headers, which else gives the queue every message.",
		},
		{
			Name: "routingKey", Scope: driver.OnProducer, Type: driver.String,
			Doc: "Routing key of every message; the topic's name where empty.",
		},
		{
			Name: "routeByKey", Scope: driver.OnProducer, Type: driver.Bool,
			Doc: "Take a message's key as its routing key, where it has one.",
		},
	}
}

// queueOptions are the properties of a queue, created with the topic or by its first consumer.
func queueOptions(on driver.Scope) []driver.Option {
	return []driver.Option{
		{
			Name: "queueType", Scope: on, Type: driver.Enum, Default: "classic",
			Profile: map[driver.Profile]string{driver.Durable: "quorum"}, Allowed: []string{"classic", "quorum"},
			Doc: "Kind of queue to create: on one node, or replicated by Raft. Streams have the driver rabbitmq-stream.",
		},
		{
			Name: "durable", Scope: on, Type: driver.Bool, Default: "true",
			Doc: "Whether a classic queue survives a restart of the broker; a quorum queue always does, and " +
				"refuses false.",
		},
		{
			Name: "deliveryLimit", Scope: on, Type: driver.Int, ZeroIsDefault: true,
			Doc: "After how many failed deliveries a quorum queue drops or dead-letters a message; the broker's " +
				"default where 0.",
		},
		{
			Name: "singleActiveConsumer", Scope: on, Type: driver.Bool,
			Doc: "Deliver to one consumer at a time, the others standing by.",
		},
		{
			Name: "maxPriority", Scope: on, Type: driver.Int, Max: 255, Reorders: true,
			Doc: "Number of priorities of a classic queue; none where 0.",
		},
		{
			Name: "maxLength", Scope: on, Type: driver.Int,
			Doc: "Most messages that the queue holds; no limit where 0.",
		},
		{
			Name: "maxLengthBytes", Scope: on, Type: driver.Size,
			Doc: "Most bytes of bodies that the queue holds; no limit where 0.",
		},
		{
			Name: "overflow", Scope: on, Type: driver.Enum, Default: "drop-head",
			Allowed: []string{"drop-head", "reject-publish", "reject-publish-dlx"},
			Doc:     "What happens at the limit: the oldest message goes, or the new one is rejected.",
		},
		{
			Name: "messageTTL", Scope: on, Type: driver.Duration, Step: int64(time.Millisecond),
			Doc: "How long a message may wait in the queue, whole milliseconds; for ever where 0.",
		},
		{
			Name: "expires", Scope: on, Type: driver.Duration, Step: int64(time.Millisecond),
			Doc: "After how long without consumers the queue is deleted, whole milliseconds; never where 0.",
		},
		{
			Name: "deadLetterExchange", Scope: on, Type: driver.String,
			Doc: "Exchange that rejected and expired messages go to.",
		},
		{
			Name: "deadLetterRoutingKey", Scope: on, Type: driver.String,
			Doc: "Routing key of dead-lettered messages; their own where empty.",
		},
		{
			Name: "deadLetterQueue", Scope: on, Type: driver.String,
			Doc: "Queue, created with the topic and of the same kind, that rejected and expired messages go to.",
		},
		leaderOption(on),
		queueArguments(on),
	}
}

func queueArguments(on driver.Scope) driver.Option {
	return driver.Option{
		Name: "queueArguments", Scope: on, Type: driver.Map,
		Doc: "Any other arguments of the queue to create, such as { 'x-max-in-memory-length': 1000 }; one that " +
			"another option sets is refused.",
	}
}

func streamOptions() []driver.Option {
	const on = driver.OnTopic
	return []driver.Option{
		queueArguments(on),
		{
			Name: "maxLengthBytes", Scope: on, Type: driver.Size,
			Doc: "Bytes after which the oldest segment of the stream is deleted; no limit where 0.",
		},
		{
			Name: "maxAge", Scope: on, Type: driver.Duration, Step: int64(time.Second),
			Doc: "Age, whole seconds, after which a segment of the stream is deleted; no limit where 0.",
		},
		{
			Name: "segmentBytes", Scope: on, Type: driver.Size, ZeroIsDefault: true,
			Doc: "Size of a segment file; the broker's default where 0.",
		},
		leaderOption(on),
	}
}

func leaderOption(on driver.Scope) driver.Option {
	return driver.Option{
		Name: "leaderLocator", Scope: on, Type: driver.Enum, Default: "client-local",
		Allowed: []string{"client-local", "balanced"},
		Doc: "Where the leader of a replicated queue starts: on the node of this connection, or on the least " +
			"loaded (balanced, which a classic queue refuses).",
	}
}

func priorityOption() driver.Option {
	return driver.Option{
		Name: "consumerPriority", Scope: driver.OnConsumer, Type: driver.Int, Min: -1 << 31, Max: 1<<31 - 1,
		Doc: "Priority of the consumer among those of the queue.",
	}
}
