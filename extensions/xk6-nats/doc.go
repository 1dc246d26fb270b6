// Package nats registers the drivers nats, core publish/subscribe, and nats-jetstream, streams with
// pull consumers, over nats.go.
//
// # Delivery
//
// nats delivers at most once, to the subscribers at that moment. A group is a queue group. A
// producer can request and a consumer can reply. A consumer that is too slow drops messages beyond
// pendingMessages or pendingBytes; its Receive returns the number (kind throttled). After a broken
// connection Receive returns that messages may be missing (kind disconnected).
//
// nats-jetstream delivers at least once, in the order of the stream. A topic is a stream with the
// topic as its only subject, and the topic's name with "_" for characters that names cannot have. A
// stream of another program is found by its subjects and is not deleted. A group is a durable
// consumer; a consumer without one is ephemeral. With retention workqueue every consumer starts at
// the earliest message. An existing group keeps its settings.
//
// A consumer pulls as many messages as its prefetch has room for, and again when half of them are
// settled. When it closes, it requeues its messages. Those that the server sends at that moment,
// and those of a killed consumer, are delivered again after ackWait.
//
// Ack, Requeue (Nak, with nakDelay) and Reject (Term) wait for a reply only if confirmation is
// asked for.
//
// Headers arrive sorted by name. A value cannot have line breaks or blanks at its ends; a name is
// printable ASCII without spaces and "()/,:;<=>?@[\]{}. Keys are not sent.
//
// # Connection string
//
//	nats://user:password@host1:4222,host2:4222?option=value    core; nats+tls: and tls: require TLS
//	jetstream://token@host:4222                                JetStream; jetstream+tls: requires TLS
//	embedded:                                                  JetStream on a server in this process
//	embedded-nats:                                             core on the same server
//
// The embedded server is a nats-server with JetStream on a random port of the loopback interface,
// one for the process. Its files are in a temporary folder, which the last connection removes.
//
// The connection reconnects every reconnectWait. Sends fail at once in the meantime.
//
// # Confirm means
//
// nats: the message is in the client's write buffer, and is lost if the connection breaks. A
// refusal of the server fails the next Send. Close of a producer waits until the server has read
// everything.
//
// nats-jetstream: the server's PubAck. The stream stored the message: on a majority with replicas,
// in the operating system with files; the disk follows by the server's sync_interval. A topic
// without a stream fails as not_found, or as disconnected if it had one. A send without an answer
// fails as disconnected or timeout, and may be stored. A duplicate by Nats-Msg-Id is rejected.
//
// # Limits
//
// A message has at most the server's max_payload, 1 MiB by default. A durable consumer has at most
// 8192 pull requests, of which a member uses up to three.
//
// A connection lends **nats.Conn, and with JetStream *jetstream.JetStream.
package nats
