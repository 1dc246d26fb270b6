package kurrentdb

import (
	"math"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// plainType is the default type of events.
const plainType = "message"

func connectOptions() []driver.Option {
	return append(driver.ConnectOptions(), driver.Option{
		Name: "requestTimeout", Scope: driver.OnConnect, Type: driver.Duration, Default: "10s",
		Min: int64(time.Millisecond),
		Doc: "How long the answer to one request may take, a connection that has to be made again included.",
	})
}

func produceOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "batch", Scope: driver.OnProducer, Type: driver.Int, Default: "1000", Min: 1,
			Doc: "How many of the messages that wait for a producer's last append one append has at most, which " +
				"share their fate; 1 gives each one of its own.",
		},
		{
			Name: "maxAppendSize", Scope: driver.OnProducer, Type: driver.Size, Default: "1MiB", Min: 1,
			Doc: "How much one append of several messages has at most; what does not fit goes with the next. " +
				"Servers before 25.1 take 1 MiB (MaxAppendSize).",
		},
		{
			Name: "eventType", Scope: driver.OnProducer | driver.OnMessage, Default: plainType,
			Doc: "The type of the event. Of what is received it is told where it is not the default.",
		},
	}
}

// consumeOptions are settings of groups, which an existing group must have. Its other settings may
// differ from the ones with which the driver creates groups.
func consumeOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "strategy", Scope: driver.OnConsumer, Type: driver.Enum, Default: "RoundRobin",
			Allowed: []string{"RoundRobin", "DispatchToSingle", "Pinned", "PinnedByCorrelation"},
			Doc: "How a group's messages are shared: PinnedByCorrelation by their keys, Pinned by the stream that " +
				"a link leads to, so that of a topic without links one consumer has all.",
		},
		{
			Name: "reject", Scope: driver.OnConsumer, Type: driver.Enum, Default: "park",
			Allowed: []string{"park", "skip"},
			Doc: "What becomes of messages that are rejected: parked with the group, where the server can replay " +
				"them, or skipped.",
		},
		{
			Name: "messageTimeout", Scope: driver.OnConsumer, Type: driver.Duration, Default: "30s",
			Min: int64(time.Millisecond), Max: math.MaxInt32 * int64(time.Millisecond),
			Step: int64(time.Millisecond),
			Doc: "How long a message may be with a consumer, received or prefetched, and not settled before the " +
				"group delivers it again.",
		},
		{
			Name: "maxRetryCount", Scope: driver.OnConsumer, Type: driver.Int, Default: "10", Max: math.MaxInt32,
			Doc: "How often a message is delivered again before the group parks it.",
		},
	}
}

func topicOptions() []driver.Option {
	return []driver.Option{
		{
			Name: "maxCount", Scope: driver.OnTopic, Type: driver.Int,
			Doc: "How many messages the stream keeps ($maxCount); no limit where 0.",
		},
		{
			Name: "maxAge", Scope: driver.OnTopic, Type: driver.Duration, Step: int64(time.Second),
			Doc: "How long, in whole seconds, the stream keeps a message ($maxAge); no limit where 0.",
		},
	}
}
