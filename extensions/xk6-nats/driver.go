package nats

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"

// defaultPayload is the default of a server's max_payload in bytes, with headers.
const defaultPayload = 1 << 20

func init() {
	driver.Register(driver.Driver{
		Name:    "nats",
		Schemes: []string{"nats", "nats+tls", "tls", "embedded-nats"},
		Doc:     "NATS core publish/subscribe, queue groups and request/reply over nats.go",
		Features: driver.Features{
			Order:           driver.PerTopic,
			Confirm:         driver.Unconfirmed,
			Deliver:         driver.AtMostOnce,
			Start:           driver.StartNew,
			SettleConfirmed: driver.Never,
			Async:           true,
			Groups:          true,
			Fanout:          true,
			Headers:         true,
			Requests:        true,
			MaxMessageBytes: defaultPayload,
		},
		Options:  append(connectOptions(), coreOptions()...),
		Open:     openCore,
		Classify: classify,
	})
	driver.Register(driver.Driver{
		Name:    "nats-jetstream",
		Schemes: []string{"jetstream", "jetstream+tls", "embedded"},
		Doc:     "NATS JetStream streams and pull consumers over nats.go",
		Features: driver.Features{
			Order:           driver.PerTopic,
			Confirm:         driver.Replicated,
			Deliver:         driver.AtLeastOnce,
			Settle:          driver.Ack | driver.Requeue | driver.Reject,
			Start:           driver.StartNew | driver.StartEarliest,
			SettleConfirmed: driver.OnRequest,
			Async:           true,
			Replay:          true,
			Groups:          true,
			Fanout:          true,
			Headers:         true,
			Attempts:        true,
			Position:        driver.Offset,
			Timestamps:      true,
			Receipts:        true,
			MaxMessageBytes: defaultPayload,
		},
		Options:  append(connectOptions(), streamOptions()...),
		Open:     openStream,
		Classify: classify,
		Place:    streamPlace,
	})
}
