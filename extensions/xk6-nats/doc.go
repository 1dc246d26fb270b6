// Package nats drives NATS over nats.go, as two drivers: "nats" is core publish/subscribe, "nats-jetstream" is streams and
// pull consumers. Importing it registers both.
//
// # Delivery
//
// nats: at most once. A message goes to those who are subscribed when the server reads it, and is gone. Consumers that name
// a group share the messages (a queue group); a consumer without one gets them all. A producer can request and a consumer
// can reply. Nothing is settled. A consumer that does not keep up drops messages beyond pendingMessages or pendingBytes, and
// its Receive returns how many (kind throttled); a consumer whose connection breaks may have missed some, and its Receive says
// so (kind disconnected).
//
// nats-jetstream: at least once, in the order of the stream while nothing is redelivered. A topic is a stream with the topic
// as its only subject, named like it with "_" for what a name cannot hold (. * > / \ and blanks); CreateTopic makes it. A
// stream that someone else made is found by its subjects, can be used and purged, and is not deleted. A group is a durable
// consumer of the same name; a consumer without one is ephemeral, gets every message, and is forgotten when it closes, or
// inactiveThreshold after it vanished. On a stream with retention workqueue every consumer starts at the earliest message,
// because the server knows no other way. Where a group exists with other settings, those hold.
//
// Prefetch bounds what a consumer has and did not settle: it pulls as many messages as there is room for, before they are
// needed, and again when half of them are settled. maxAckPending, which bounds the whole group, is set high so that it does
// not interfere. What a member of a group holds when it closes is requeued at once; what the server was sending at that
// moment comes again after ackWait, as does everything of a member that was killed.
//
// Ack, Requeue (Nak, with nakDelay) and Reject (Term) are sent without waiting, or each with a reply that Settle waits for
// where confirmation is asked for; the replies of a batch are under way together. With ackPolicy "all" one acknowledgement
// settles everything delivered before it, to whichever member, so it is for groups of one.
//
// The headers of a message come sorted by name: nats.go does not keep the order of the wire. A value may hold any bytes but
// line breaks, and no blanks at its ends; others are rejected, because nats.go would change them without a word. A name is
// printable ASCII without spaces and without "()/,:;<=>?@[\]{}. Keys of messages are not sent.
//
// # Connection string
//
//	nats://user:password@host1:4222,host2:4222?option=value    core; nats+tls: and tls: insist on TLS
//	jetstream://token@host:4222                                JetStream; jetstream+tls: insists on TLS
//	embedded:                                                  JetStream on a server inside this process
//	embedded-nats:                                             core on the same server
//
// The embedded server is a real nats-server with JetStream on a random port of the loopback interface; clients reach it by
// TCP as they would any other. There is one per process. Its streams are files in a temporary folder that starts with
// xk6-nats-embedded-, which is removed with the last connection; a process that is killed leaves it behind.
//
// The connection comes back by itself, without end, every reconnectWait, also when it was refused. What is sent in the
// meantime fails at once: nothing is buffered.
//
// # Confirm means
//
// nats: nothing is known of the server. A message is done when it is in the client's write buffer, which a goroutine writes
// to the socket at once, and Send itself when it is full; what was in the buffer when the connection broke is lost. A
// refusal by the server (permissions) names no message: the next Send fails with it. Close of a producer waits until the
// server has read everything.
//
// nats-jetstream: the server's PubAck, which it sends when the stream has stored the message: with replicas, when a majority
// of the servers has; in a file, when it is written to the operating system, not when it is on the disk (that is the
// server's sync_interval). No retry: a message to a topic that no stream keeps fails at once as not_found. What is pending
// when the connection breaks fails as disconnected, and what has no answer after ackTimeout as a timeout; the server may
// have stored either. What the server drops as a duplicate, by the header Nats-Msg-Id, is rejected: nobody receives it.
//
// # Limits
//
// A message and its headers may have 1 MiB, unless the server's max_payload says otherwise; a larger one is rejected by the
// client. A durable consumer takes 8192 pull requests, of which a member has up to three.
//
// # As
//
// A connection lends **nats.Conn, and with JetStream *jetstream.JetStream; a consumer lends **nats.Subscription, and with
// JetStream *jetstream.Consumer.
package nats
