package postgres

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// protocol is PostgreSQL's. A server that cannot start a process for a connection sends E and a
// text.
func init() {
	driver.Register(driver.Driver{
		Name:    "postgres",
		Schemes: []string{"postgres", "postgresql"},
		Doc:     "PostgreSQL tables as queues: INSERT, UPDATE of what FOR UPDATE SKIP LOCKED finds, and DELETE when the message is settled.",
		Features: driver.Features{
			Order: driver.PerTopic, Confirm: driver.Replicated, Deliver: driver.AtLeastOnce,
			Settle: driver.Ack | driver.Requeue | driver.Reject, Start: driver.StartEarliest, SettleConfirmed: driver.Always,
			Async: true, Key: true, Headers: true, Attempts: true, Tombstones: true, MaxMessageBytes: maxBody,
		},
		Options:  options(),
		Open:     open,
		Classify: classify,
	})
}

func options() []driver.Option {
	return append(driver.ConnectOptions(), []driver.Option{
		{
			Name: "timeout", Scope: driver.OnConnect, Type: driver.Duration, Default: "30s", Min: int64(time.Millisecond),
			Doc: "How long the answer to one statement may take, before the connection is given up.",
		},
		{Name: "schema", Scope: driver.OnConnect, Default: "public", Doc: "The schema in which topics are tables."},
		{
			Name: "synchronousCommit", Scope: driver.OnProducer | driver.OnConsumer, Type: driver.Enum, Default: "on",
			Allowed: []string{"on", "off", "local", "remote_write", "remote_apply"},
			Doc:     "What a commit waits for, as the server's synchronous_commit says: of a producer what a confirmation proves, of a consumer what a settlement does.",
		},
		{
			Name: "transaction", Scope: driver.OnProducer, Type: driver.Int, Default: "1000", Min: 1,
			Doc: "How many of the messages that wait for a producer's connection one transaction has at most, which share their fate; 1 gives each one of its own.",
		},
		{
			Name: "lease", Scope: driver.OnConsumer, Type: driver.Duration, Default: "30s", Min: int64(10 * time.Millisecond),
			Doc: "How long a message may be with a consumer and not settled before it is delivered again.",
		},
		{
			Name: "requeueDelay", Scope: driver.OnConsumer, Type: driver.Duration,
			Doc: "How long after a message was given back it is delivered again at the earliest.",
		},
		{
			Name:  "deadLetter",
			Scope: driver.OnConsumer,
			Doc:   "The topic that gets the messages that are rejected; otherwise they are deleted.",
		},
		{
			Name: "unlogged", Scope: driver.OnTopic, Type: driver.Bool,
			Doc: "Make an UNLOGGED table: the server writes no log of it, replicates nothing, and empties it when it starts after a crash.",
		},
		{
			Name: "fillFactor", Scope: driver.OnTopic, Type: driver.Int, Default: "50", Min: 10, Max: 100,
			Doc: "How much of a page, in percent, INSERT fills: what it leaves is for the second version that a message has when it was delivered.",
		},
	}...)
}
