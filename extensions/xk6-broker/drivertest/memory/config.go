package memory

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// Config describes a broker. The zero value is a broker with all features and no delays.
type Config struct {
	// Name is the driver's name and its URL scheme; "memory" if empty.
	Name string
	// Features are the features of broker and driver; [Full] if zero.
	Features driver.Features
	// Bare leaves out the optional verbs of connections. Topics are created by use then.
	Bare bool
	// Coarse leaves the undelivered messages out of the backlog.
	Coarse bool
	// Cumulative settles, with a message, all that its consumer received before it.
	Cumulative bool
	// Untold leaves unsettled messages out of the backlog.
	Untold bool
	// Apart makes the broker pretend to be outside the process of its clients.
	Apart bool
	// Deliveries is how often a requeued message is delivered before it is dropped; 0 is no limit.
	Deliveries int32
	// Service is how long a server of the broker works on message n, counted from 0 over all
	// producers. Messages wait for an idle server. Nil takes no time.
	Service func(n int64) time.Duration
	// Servers is the number of servers; 0 is one.
	Servers int
	// Transit is how long after its confirmation message n can be received. Nil takes no time.
	Transit func(n int64) time.Duration
}

// Full returns all features.
func Full() driver.Features {
	return driver.Features{
		Order: driver.PerTopic, Confirm: driver.Accepted, Deliver: driver.AtLeastOnce,
		Settle: driver.Ack | driver.Requeue | driver.Reject, SettleConfirmed: driver.OnRequest,
		Start: driver.StartNew | driver.StartEarliest,
		Async: true, Replay: true, Groups: true, Fanout: true, Key: true, Headers: true, Attempts: true, Requests: true,
		Position: driver.Offset, Timestamps: true, Receipts: true, MaxMessageBytes: 1 << 20,
	}
}

// Log returns the features of a partitioned log.
func Log() driver.Features {
	f := Full()
	f.Order, f.Confirm, f.Settle, f.SettleConfirmed = driver.PerPartition, driver.Replicated, driver.Ack, driver.Always
	f.Attempts, f.Requests, f.Tombstones, f.Partitions = false, false, true, true
	return f
}

// Queue returns the features of a work queue: all consumers share one flow.
func Queue() driver.Features {
	f := Full()
	f.Start, f.SettleConfirmed = driver.StartEarliest, driver.Never
	f.Replay, f.Groups, f.Fanout, f.Attempts = false, false, false, false
	f.Position, f.Timestamps, f.Receipts = driver.Identifier, false, false
	return f
}

// Store returns the features of a store that only takes messages, such as a metric store.
func Store() driver.Features {
	return driver.Features{Confirm: driver.Accepted, Key: true, Headers: true, MaxMessageBytes: 1 << 20}
}

// Subject returns the features of plain publish and subscribe: absent consumers miss messages.
func Subject() driver.Features {
	return driver.Features{Order: driver.PerTopic, Start: driver.StartNew, Fanout: true}
}
