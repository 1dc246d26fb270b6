package sqs

import (
	"context"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func init() {
	features := driver.Features{
		Order: driver.Unordered, Confirm: driver.Replicated, Deliver: driver.AtLeastOnce,
		Settle: driver.Ack | driver.Requeue, Start: driver.StartEarliest, SettleConfirmed: driver.Always,
		Async: true, Headers: true, Attempts: true, Timestamps: true, MaxMessageBytes: maxBytes,
	}
	driver.Register(driver.Driver{
		Name:     "sqs",
		Schemes:  []string{"sqs", "sqs+tls"},
		OneHost:  true,
		Doc:      "Standard queues of Amazon SQS and what speaks its protocol: batches of ten, long polling, visibility time-outs.",
		Features: features,
		Options:  options(standard),
		Open:     standard.open,
		Classify: classify,
		Place:    place,
	})

	features.Order, features.Key, features.Partitions = driver.PerPartition, true, true
	driver.Register(driver.Driver{
		Name:     "sqs-fifo",
		Schemes:  []string{"sqs-fifo", "sqs-fifo+tls"},
		OneHost:  true,
		Doc:      "FIFO queues of Amazon SQS and what speaks its protocol: a key is a message group, each of which keeps its order.",
		Features: features,
		Options:  options(fifo),
		Open:     fifo.open,
		Classify: classify,
		Place:    place,
	})
}

// kind is the kind of queues of a driver.
type kind uint8

const (
	standard kind = iota
	fifo
)

func (k kind) open(ctx context.Context, t driver.Target) (driver.Conn, error) { return open(ctx, t, k) }
