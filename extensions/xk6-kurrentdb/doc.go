// Package kurrentdb holds the driver kurrentdb, for KurrentDB and EventStoreDB (21.10 or later) over gRPC.
//
// It is not proven on a real server: neither the conformance kit nor anything else has been run on one. Its unit tests, the kit as one of them, and the
// scenarios run on a gRPC server in memory, internal/double, which was written against the published protocol and is no KurrentDB. "scripts/broker up
// kurrentdb-standin" starts it. BROKER_URL_KURRENTDB names a real server to run the kit on.
//
// It speaks the protocol by the stubs that Kurrent's Go client github.com/kurrent-io/KurrentDB-Client-Go has in its package protos, and not by that client's
// Client: that one asks for its connection in a way that no context ends, is closed for good by a server that was away for a moment, leaves the old connection
// behind when it makes a new one, and can be made to panic by closing it beside a request. These are the reasons, and not speed: no benchmark compares the two,
// and the hand-written loops that the driver is measured beside use the same stubs.
//
// # Delivery
//
// A topic is a stream. A producer has one append under way at a time (Append with any expected revision, as AppendToStream does it), so the stream has its
// messages in order. What is sent together is one append of several events, and what comes while it is under way goes with the next, up to so many as the
// option batch says. An append is atomic: all of its events are stored, or none, and all of its messages are confirmed, or fail with the same error. Message.Key is
// the event's correlation id ($correlationId), and headers are its other metadata, a JSON object of text, each name once. An event's id is random.
//
// A consumer with a group is a consumer of a persistent subscription of the stream's, which is made where there is none, with the settings that the options
// say; one that is there with other settings is an error. The prefetch is the subscription's buffer size: the server sends no more before it is
// settled (the product's clients have 10 by default, which makes every tenth message wait for an answer). A message that was sent to a consumer and is not settled
// within messageTimeout is delivered again, and so is what a consumer has when it closes; each delivery counts as an attempt.
//
//   - Ack acknowledges.
//   - Requeue has the group deliver the message again (retry), up to maxRetryCount times; then it parks it.
//   - Reject parks the message, which is this product's dead letter, or skips it, as the option reject says.
//
// The server confirms none of them. A consumer that closes waits, for a second at most, until the server tells that it has what was settled; where it does not tell,
// or the connection broke, what was settled just before may come again. Parked messages are counted by the server with the group's statistics (parkedMessageCount),
// and replayed by its tools.
//
// A consumer without a group follows the stream by a catch-up subscription: it gets everything, from the beginning or from now on, in order, settles
// nothing, and goes on after the last message that came when its connection broke.
//
// Order is that of the stream. A group keeps it while one consumer has all of the messages and none is delivered again; the product promises no more than
// that.
//
// The position of a message is its revision in the stream; its timestamp is when the server wrote it.
//
// # Topics
//
// A stream comes to be with its first event. So that a name that was mistyped is an error, createTopic notes in the stream's metadata that it is a topic, and
// a stream that has neither events nor that is not there. deleteTopic deletes the stream, and does not make a tombstone of it: a tombstone's name could never be
// used again. A stream that was deleted may be appended to, its numbers go on, and its old events stay gone. Its groups are deleted with it. A purge truncates the stream ($tb),
// and makes its groups anew, with their settings, because they hold what they have read in memory.
//
// # Connection string
//
//	kurrentdb://127.0.0.1:2113
//	kurrentdb+tls://admin:changeit@host1,host2,host3?tlsCA=ca.pem
//	esdb://127.0.0.1:2113?tls=false
//
// Unlike in the product's own connection strings TLS is not the default. A server in insecure mode takes no users, and a password is not sent without TLS. One host
// is used as it is. Of several, each is asked for the leader, at the address that the cluster's gossip tells; when that one is away, or leads no more, the next
// request looks for its successor.
//
// # Confirm means
//
// One server: it has the message in its log (on disk, unless its settings MemDb or UnsafeDisableFlushToDisk say otherwise, which it tells nobody). A cluster: a
// quorum of its members has it, which is said only where the gossip tells of several. A request that fails is never made again: one that has no
// answer within requestTimeout may have been stored.
//
// # Limits
//
//   - Since 25.1 a server takes events of 16 MiB; before that it took 1 MiB by one append. Both are settings. The option maxAppendSize keeps appends of
//     several messages below that.
//   - A group's backlog is exact while the group is live, by this driver's reading of the product's statistics. One that is behind reads from the disk, and the
//     number is what the stream has behind the group's last checkpoint, which is too much; so it is called an estimate.
//   - After a restart of the server a group begins at its last checkpoint: up to maxCheckpoint messages come again, settled or not.
//   - Groups are made and deleted by administrators ($admins, $ops) only, where the server has users.
//   - Projections, $all, filters and expected revisions are left out.
//
// # As
//
// A connection lends its *grpc.ClientConn.
package kurrentdb
