// Package kurrentdb has the driver kurrentdb, for KurrentDB and EventStoreDB (21.10 or later) over
// gRPC.
//
// It is not proven on a real server. Its tests, the conformance kit and the scenarios run on a gRPC
// server in memory, internal/double, written against the published protocol, which "scripts/broker
// up kurrentdb-standin" starts. BROKER_URL_KURRENTDB names a real server for the kit.
//
// It uses the stubs of Kurrent's Go client github.com/kurrent-io/KurrentDB-Client-Go, and not its
// Client: that one connects without a context, is closed for good by a server that was away, leaks
// connections, and panics if it is closed during a request.
//
// # Delivery
//
// A topic is a stream. A producer has one append under way, so the stream keeps its order. Messages
// sent together are one append of several events, up to the option batch; messages sent meanwhile
// go with the next. An append is atomic: its messages are confirmed or fail together. Message.Key
// is the event's correlation id ($correlationId), headers are its other metadata, a JSON object of
// text.
//
// A consumer with a group is a consumer of a persistent subscription, which is created if it is
// absent. An existing one with other options is an error; its buffers and checkpoints may differ
// from the product's defaults, with which the driver creates groups. The prefetch is the
// subscription's buffer size. A message that is not settled within messageTimeout, or when its
// consumer closes, is delivered again and counts as an attempt.
//
//   - Ack acknowledges.
//   - Requeue redelivers the message (retry), up to maxRetryCount times; then the group parks it.
//   - Reject parks the message, the product's dead letter, or skips it, by the option reject.
//
// The server confirms none of them. A consumer that closes waits up to a second until the server
// reports that it has the settlements; otherwise the last messages may be delivered again.
//
// A consumer without a group follows the stream by a catch-up subscription: in order, from the
// beginning or from now, without settling, and after a broken connection from the last message.
//
// The order is the stream's. A group keeps it while one consumer has all messages and none is
// redelivered. The position of a message is its revision, its timestamp the server's.
//
// # Topics
//
// A stream exists from its first event. So that a wrong name is an error, createTopic marks a topic
// in the stream's metadata, and a stream with neither events nor the mark is absent. deleteTopic
// deletes the stream and its groups without a tombstone, so that the name can be used again and its
// numbers go on. A purge truncates the stream ($tb) and creates its groups again, because they hold
// events in memory.
//
// # Connection string
//
//	kurrentdb://127.0.0.1:2113
//	kurrentdb+tls://admin:changeit@host?tlsCA=ca.pem
//	esdb://127.0.0.1:2113?tls=false
//
// Unlike in the product's connection strings TLS is not the default. Users need TLS. The URL has
// one host: in a cluster that of the leader, because other servers refuse requests.
//
// # Confirm means
//
// One server has the message in its log, on disk unless its settings MemDb or
// UnsafeDisableFlushToDisk disable that. In a cluster a quorum has it, if the gossip names several
// members. A failed request is never repeated: one without an answer may have been stored.
//
// # Limits
//
//   - Since 25.1 a server accepts events of 16 MiB, before that appends of 1 MiB. The option
//     maxAppendSize limits appends of several messages.
//   - A group's backlog is exact while the group is live, by the product's documentation. One that
//     reads from disk has too great a number, the distance from its checkpoint. It is an estimate.
//   - After a restart of the server a group begins at its checkpoint: up to 1000 messages are
//     delivered again.
//   - On a server with users, administrators ($admins, $ops) only can create and delete groups.
//   - There are no projections, $all, filters and expected revisions.
//
// # As
package kurrentdb
