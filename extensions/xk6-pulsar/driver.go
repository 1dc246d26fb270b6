package pulsar

import (
	"context"
	"slices"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// maxMessageBytes is the largest body by the default of maxMessageSize.
const maxMessageBytes = 5 << 20

func init() {
	features := driver.Features{
		Order:           driver.Unordered,
		Confirm:         driver.Replicated,
		Deliver:         driver.AtLeastOnce,
		Settle:          driver.Ack | driver.Requeue | driver.Reject,
		Start:           driver.StartNew | driver.StartEarliest,
		SettleConfirmed: driver.OnRequest,
		Async:           true,
		Replay:          true,
		Groups:          true,
		Fanout:          true,
		Key:             true,
		Headers:         true,
		Partitions:      true,
		Position:        driver.Identifier,
		Timestamps:      true,
		Receipts:        true,
		MaxMessageBytes: maxMessageBytes,
	}
	driver.Register(driver.Driver{
		Name:      "pulsar",
		Schemes:   []string{"pulsar", "pulsar+ssl"},
		OwnDialer: true,
		Doc: "Apache Pulsar topics with shared or key-shared subscriptions: each message goes to one consumer of a " +
			"group, and is settled by itself.",
		Features: features,
		Options: slices.Concat(
			connectOptions(), produceOptions(), consumeOptions(shared), sharedOptions(), topicOptions(),
		),
		Open:     shared.open,
		Classify: classify,
		Place:    place,
	})

	features.Order = driver.PerPartition
	features.Settle = driver.Ack
	driver.Register(driver.Driver{
		Name:      "pulsar-failover",
		Schemes:   []string{"pulsar-failover", "pulsar-failover+ssl"},
		OwnDialer: true,
		Doc: "Apache Pulsar topics with failover or exclusive subscriptions: each partition goes to one consumer " +
			"of a group, in order.",
		Features: features,
		Options:  slices.Concat(connectOptions(), produceOptions(), consumeOptions(failover), topicOptions()),
		Open:     failover.open,
		Classify: classify,
		Place:    place,
	})
}

// mode is one of the drivers of this package.
type mode uint8

const (
	shared   mode = iota // shared and key-shared: messages are spread over consumers
	failover             // failover and exclusive: a partition has one consumer at a time
)

// types are the values of the option subscriptionType, the default first.
func (m mode) types() []string {
	if m == failover {
		return []string{"failover", "exclusive"}
	}
	return []string{"shared", "key-shared"}
}

var subscriptionTypes = map[string]pulsar.SubscriptionType{
	"shared": pulsar.Shared, "key-shared": pulsar.KeyShared, "failover": pulsar.Failover, "exclusive": pulsar.Exclusive,
}

func (m mode) open(ctx context.Context, t driver.Target) (driver.Conn, error) { return open(ctx, t, m) }

// The optional interfaces of the drivers: a method with a wrong signature must not compile.
var (
	_ driver.Admin          = &conn{}
	_ driver.TopicDescriber = &conn{}
	_ driver.Backlogger     = &conn{}
	_ driver.Prover         = &conn{}
	_ driver.Informer       = &conn{}
)
