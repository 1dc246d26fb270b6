package rocketmq

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Limits of the server's default settings.
const (
	leastPoll, mostPoll           = 100 * time.Millisecond, 20 * time.Second
	leastInvisible, mostInvisible = 10 * time.Second, 12 * time.Hour
	mostReceived                  = 32 // messages by one call
)

func connectOptions() []driver.Option {
	return append(driver.ConnectOptions(), []driver.Option{
		{
			Name: "nameServer", Scope: driver.OnConnect,
			Doc:  "The name servers, host:port and comma-separated, by which topics and groups are made and asked for; by default port 9876 of the URL's hosts.",
			Type: driver.List,
		},
		{
			Name: "endpoints", Scope: driver.OnConnect, Type: driver.Enum, Default: "advertised",
			Allowed: []string{"advertised", "url"},
			Doc:     "Where messages are sent and received: at the addresses that the servers advertise for a topic, or at the URL's alone, for a proxy in front of one server.",
		},
		{
			Name:  "namespace",
			Scope: driver.OnConnect,
			Doc:   "The namespace of topics and groups, where the servers have several.",
		},
		{
			Name: "requestTimeout", Scope: driver.OnConnect, Type: driver.Duration, Default: "10s", Min: int64(time.Millisecond),
			Doc: "How long the answer to one request may take, a connection that has to be made again included.",
		},
	}...)
}

func produceOptions() []driver.Option {
	return []driver.Option{
		{Name: "tag", Scope: driver.OnProducer | driver.OnMessage, Doc: "A message's tag, by which consumers may choose."},
		{
			Name: "deliverAfter", Scope: driver.OnProducer | driver.OnMessage, Type: driver.Duration, SendOnly: true,
			Reorders: true,
			Doc:      "How long the broker keeps a message before it delivers it; of topics whose messageType is delay or mixed.",
		},
		{
			Name: "requests", Scope: driver.OnProducer, Type: driver.Int, Default: "64", Min: 1, Max: 4096,
			Doc: "How many requests of a producer may be unanswered; further messages wait for one of them. A topic of fifo messages has one for each partition.",
		},
		{
			Name: "batch", Scope: driver.OnProducer, Type: driver.Int, Default: "1", Min: 1, Max: 1024,
			Profile: map[driver.Profile]string{driver.Throughput: "32"},
			Doc:     "How many of the messages that wait for a request it may have, which share its fate and a queue; nothing waits for more to come. One message of a fifo topic goes by itself.",
		},
	}
}

func consumeOptions() []driver.Option {
	return []driver.Option{
		{
			Name:    "tags",
			Scope:   driver.OnConsumer,
			Default: "*",
			Selects: true,
			Doc:     "The tags of the messages to receive, as in \"red || blue\"; * is all messages.",
		},
		{
			Name: "invisibleTime", Scope: driver.OnConsumer, Type: driver.Duration, Default: "30s", Min: int64(leastInvisible),
			Max: int64(mostInvisible),
			Doc: "How long a message may be with a consumer and not settled before it is delivered again.",
		},
		{
			Name: "requeueDelay", Scope: driver.OnConsumer, Type: driver.Duration, Default: "0s", Max: int64(mostInvisible),
			Doc: "How long after a message was given back it is delivered again at the earliest.",
		},
		{
			Name: "pollTime", Scope: driver.OnConsumer, Type: driver.Duration, Default: "5s", Min: int64(leastPoll),
			Max: int64(mostPoll),
			Doc: "How long a server waits for a message before it answers that there is none; 5s is the least that servers do by default. A consumer that closes waits for it.",
		},
		{
			Name: "receives", Scope: driver.OnConsumer, Type: driver.Int, Default: "1", Min: 1, Max: 256,
			Doc: "How many requests for messages, of up to 32 each, a consumer has with each broker at a time.",
		},
		{
			Name: "maxAttempts", Scope: driver.OnConsumer, Type: driver.Int, Default: "16", Min: 1,
			Doc: "How often a message is delivered again before it is a dead letter, of a group that is new; 16 is the server's own.",
		},
	}
}

// messageTypes are the values of the option messageType, and in capitals of the topic's attribute
// message.type.
var messageTypes = []string{"normal", "delay", "fifo", "mixed"}

func topicOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "messageType", Scope: driver.OnTopic, Type: driver.Enum, Default: "normal", Allowed: messageTypes,
			Doc: "What messages a topic takes: with delay those with deliverAfter only, with fifo those in order by their keys, with mixed the first two.",
		},
	}
}
