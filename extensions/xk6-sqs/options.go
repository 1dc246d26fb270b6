package sqs

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// maxVisibility is the longest visibility time-out.
const maxVisibility = int64(12 * time.Hour)

func options(k kind) []driver.Option {
	const second = int64(time.Second)
	all := append(driver.ConnectOptions(), []driver.Option{
		{
			Name: "region", Scope: driver.OnConnect,
			Doc: "The region, instead of that of the environment or of AWS's configuration files; us-east-1 where there is none and the URL names a host.",
		},
		{
			Name:   "sessionToken",
			Scope:  driver.OnConnect,
			Secret: true,
			Doc:    "The session token of temporary credentials whose access key is the URL's user.",
		},
		{
			Name: "timeout", Scope: driver.OnConnect, Type: driver.Duration, Default: "30s", Min: int64(time.Millisecond),
			Doc: "How long the answer to a request may take before it is given up; of a receive beyond its waitTime.",
		},
		{
			Name: "inFlight", Scope: driver.OnProducer | driver.OnConsumer, Type: driver.Int, Default: "8", Min: 1, Max: 1000,
			Doc: "How many requests may be under way at a time, each with up to ten messages: of a producer to send, of a consumer to receive and as many to settle.",
		},
		{
			Name: "waitTime", Scope: driver.OnConsumer, Type: driver.Duration, Default: "1s", Min: second, Max: 20 * second,
			Step: second,
			Doc:  "How long the service holds a receive that finds no message, whole seconds; closing a consumer waits as long for those under way.",
		},
		{
			Name: "visibilityTimeout", Scope: driver.OnConsumer, Type: driver.Duration, Default: "30s", Min: second,
			Max: maxVisibility, Step: second,
			Doc: "How long a message may be with a consumer and not settled before it is delivered again, whole seconds; it runs while the message waits to be received, too.",
		},
		{
			Name: "requeueDelay", Scope: driver.OnConsumer, Type: driver.Duration, Max: maxVisibility, Step: second,
			Doc: "How long after a message was given back it is delivered again at the earliest, whole seconds.",
		},
		{
			Name: "retention", Scope: driver.OnTopic, Type: driver.Duration, Default: "0", Max: int64(14 * 24 * time.Hour),
			Step: second, ZeroIsDefault: true,
			Doc: "How long the queue keeps a message, whole seconds from 1m; 0 is the service's default of four days, and takes a queue that exists as it is.",
		},
		{
			Name: "deadLetterQueue", Scope: driver.OnTopic,
			Doc: "Queue, created with the topic where there is none, that gets what was delivered maxReceiveCount times and not settled.",
		},
		{
			Name: "maxReceiveCount", Scope: driver.OnTopic, Type: driver.Int, Default: "10", Min: 1, Max: 1000,
			Doc: "How often a message is delivered before it goes to the deadLetterQueue.",
		},
		{
			Name:  "attributes",
			Scope: driver.OnTopic,
			Type:  driver.Map,
			Doc:   "Any other attributes of the queue, such as { VisibilityTimeout: 7 }; in a URL attributes=Name=value, once for each.",
		},
	}...)
	if k == fifo {
		return append(all,
			driver.Option{
				Name: "messageGroups", Scope: driver.OnProducer, Type: driver.Int, Default: "1000", Min: 1, Max: 1 << 20,
				Doc: "Over how many message groups messages without a key are spread, each in turn; 1 keeps the order of all of them.",
			},
			driver.Option{
				Name: "deduplicationId", Scope: driver.OnMessage, SendOnly: true,
				Doc: "The message's deduplication id, instead of one that no other has; the service confirms a second one of five minutes, and drops it.",
			})
	}
	return append(all, driver.Option{
		Name: "delay", Scope: driver.OnProducer | driver.OnMessage, Type: driver.Duration, Max: int64(15 * time.Minute),
		Step: second, SendOnly: true, Reorders: true,
		Doc: "How long the service keeps the message from consumers, whole seconds.",
	})
}
