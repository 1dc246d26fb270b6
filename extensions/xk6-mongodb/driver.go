package mongodb

import (
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func init() {
	driver.Register(driver.Driver{
		Name:    "mongodb",
		Schemes: []string{"mongodb", "mongodb+tls"},
		Doc:     "MongoDB collections as queues: insertMany, findOneAndUpdate with a lease, and deleteMany when messages are settled.",
		Features: driver.Features{
			Order: driver.Unordered, Confirm: driver.Replicated, Deliver: driver.AtLeastOnce,
			Settle: driver.Ack | driver.Requeue | driver.Reject, Start: driver.StartEarliest, SettleConfirmed: driver.Always,
			Async: true, Key: true, Headers: true, Attempts: true, Tombstones: true, MaxMessageBytes: maxBody,
		},
		Options:  settings(),
		Open:     open,
		Classify: classify,
	})
}

func settings() []driver.Option {
	return append(driver.ConnectOptions(), []driver.Option{
		{
			Name: "timeout", Scope: driver.OnConnect, Type: driver.Duration, Default: "30s", Min: int64(time.Millisecond),
			Doc: "How long the answer to one command may take, what the write concern waits for included.",
		},
		{
			Name:  "authSource",
			Scope: driver.OnConnect,
			Doc:   "The database that has the user, instead of the URL's database; admin where the URL names none.",
		},
		{
			Name: "authMechanism", Scope: driver.OnConnect, Type: driver.Enum, Default: "auto",
			Allowed: []string{"auto", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN", "MONGODB-X509"},
			Doc:     "How the user is authenticated; auto is the strongest SCRAM that the server has for the user, and MONGODB-X509 needs tlsCert.",
		},
		{
			Name:  "replicaSet",
			Scope: driver.OnConnect,
			Doc:   "The name that the replica set must have; servers of another one are not used.",
		},
		{
			Name: "directConnection", Scope: driver.OnConnect, Type: driver.Bool,
			Doc: "Speak to the URL's host only, and to no other members of its replica set.",
		},
		{
			Name: "w", Scope: driver.OnProducer | driver.OnConsumer, Default: "majority",
			Doc: "How many members a write waits for, a number up to 50 or majority: of a producer what a confirmation proves, and 0 proves nothing; of a consumer what a settlement does, and 0 is 1.",
		},
		{
			Name: "journal", Scope: driver.OnProducer | driver.OnConsumer, Type: driver.Bool,
			Profile: map[driver.Profile]string{driver.Durable: "true"},
			Doc:     "A write also waits for the journals, on disk, of the members that it waits for; false leaves that to the servers.",
		},
		{
			Name: "inFlight", Scope: driver.OnProducer | driver.OnConsumer, Type: driver.Int, Default: "8", Min: 1, Max: 1000,
			Doc: "How many commands may be under way at a time: of a producer, each with as many messages as batch says; of a consumer, each for one message, which is all that MongoDB leases at once.",
		},
		{
			Name: "batch", Scope: driver.OnProducer, Type: driver.Int, Default: "1000", Min: 1, Max: 100_000,
			Doc: "How many of the messages that wait for a command one insertMany has at most; 1 gives each one of its own.",
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
			Name: "maxAttempts", Scope: driver.OnConsumer, Type: driver.Int, Default: "0", Max: 1 << 30,
			Doc: "After how many deliveries a message that is not acknowledged is given up: sent to deadLetter, or deleted where there is none; 0 is without end.",
		},
		{
			Name:  "deadLetter",
			Scope: driver.OnConsumer,
			Doc:   "The topic that gets the messages that are rejected or given up; otherwise they are deleted.",
		},
		{
			Name: "wait", Scope: driver.OnConsumer, Type: driver.Enum, Default: "auto",
			Allowed: []string{"auto", "changeStream", "poll"},
			Doc:     "How a consumer that found nothing learns of messages: by a change stream, or by asking each pollInterval; auto polls only where the server is no replica set and has no change streams.",
		},
		{
			Name: "pollInterval", Scope: driver.OnConsumer, Type: driver.Duration, Default: "10ms", Min: int64(time.Millisecond),
			Doc: "How often a consumer that polls asks whether there is a message; on average half of it is in the latency of every message that finds the consumer waiting.",
		},
	}...)
}
