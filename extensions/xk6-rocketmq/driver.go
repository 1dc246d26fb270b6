package rocketmq

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// maxMessageBytes is the largest body by the server's default settings.
const maxMessageBytes = 4 << 20

func init() {
	driver.Register(driver.Driver{
		Name:    "rocketmq",
		Schemes: []string{"rocketmq"},
		Doc:     "Apache RocketMQ 5 topics by gRPC, as its simple consumers have them: each message goes to one consumer of a group, and is settled by itself.",
		Features: driver.Features{
			Order:           driver.Unordered,
			Confirm:         driver.Replicated,
			Deliver:         driver.AtLeastOnce,
			Settle:          driver.Ack | driver.Requeue | driver.Reject,
			Start:           driver.StartNew | driver.StartEarliest,
			SettleConfirmed: driver.Always,
			Async:           true,
			Replay:          true,
			Groups:          true,
			Fanout:          true,
			Key:             true,
			Headers:         true,
			Attempts:        true,
			Partitions:      true,
			Position:        driver.Offset,
			Timestamps:      true,
			MaxMessageBytes: maxMessageBytes,
		},
		Options:  slices.Concat(connectOptions(), produceOptions(), consumeOptions(), topicOptions()),
		Open:     open,
		Classify: classify,
		Place:    place,
	})
}
