package kurrentdb

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// protocol is KurrentDB's. Its servers have a page for browsers at the same port.
func init() {
	driver.Register(driver.Driver{
		Name:    "kurrentdb",
		Schemes: []string{"kurrentdb", "kurrentdb+tls", "esdb", "esdb+tls"},
		OneHost: true,
		Doc: "KurrentDB and EventStoreDB by gRPC: streams, read by persistent subscriptions (consumers with a group) " +
			"and by catch-up subscriptions (without one). Not proven on a real server.",
		Features: driver.Features{
			Order:           driver.PerTopic,
			Confirm:         driver.Replicated,
			Deliver:         driver.AtLeastOnce,
			Settle:          driver.Ack | driver.Requeue | driver.Reject,
			Start:           driver.StartNew | driver.StartEarliest,
			SettleConfirmed: driver.Never,
			Async:           true,
			Replay:          true,
			Groups:          true,
			Fanout:          true,
			Key:             true,
			Headers:         true,
			Attempts:        true,
			Position:        driver.Offset,
			Timestamps:      true,
			Receipts:        true,
			// No MaxMessageBytes: it depends on the server's version.
		},
		Options:  slices.Concat(connectOptions(), produceOptions(), consumeOptions(), topicOptions()),
		Open:     open,
		Classify: classify,
		Place:    place,
	})
}

// The optional interfaces of the driver: a method with a wrong signature must not compile.
var (
	_ driver.Admin          = &conn{}
	_ driver.TopicDescriber = &conn{}
	_ driver.Backlogger     = &conn{}
	_ driver.Prover         = &conn{}
	_ driver.Informer       = &conn{}
)
