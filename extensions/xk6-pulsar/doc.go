// Package pulsar has two drivers for Apache Pulsar, over its Go client github.com/apache/pulsar-client-go:
//
//   - pulsar: a group is a shared or a key-shared subscription, which spreads messages over its consumers and settles each by itself;
//   - pulsar-failover: a group is a failover or an exclusive subscription, which gives a partition to one consumer at a time, in order.
//
// # Delivery
//
// Both deliver at least once. Acks are individual, unless pulsar-failover is told otherwise, and what a consumer has not acked when it closes is
// delivered again. A consumer without a group has a durable subscription of its own, which it deletes by the admin API when it closes; one that was killed leaves its subscription,
// named "xk6-broker-" and a number, which then keeps what is sent until somebody deletes it. All members of a group must have the same
// subscriptionType, and an exclusive subscription has one consumer: the broker refuses others as rejected.
//
// With pulsar no order is claimed, and with key-shared none but that of each key holds, where producers send one by one or with batching=key.
// Requeue is a negative acknowledgement, which the client collects for nackDelay, 9 ms at least. Pulsar has no rejection: a rejected message
// is acknowledged, and sent to deadLetterTopic before that, where there is one, with the properties REAL_TOPIC and ORIGIN_MESSAGE_ID. How
// often a message was delivered the broker forgets when the last consumer of a group leaves, so that no attempts are claimed.
//
// With pulsar-failover order holds within a partition. There is no requeue, since the broker would deliver again all that the consumer has not
// acked. With ackType=cumulative the broker is told of the last message of each partition that is acked together, which settles all before it, acked
// or not; acked counts only what the application acked. The other subscriptions have no such acks: what was before a message is with other consumers.
//
// A new group begins with new messages or with the earliest that the topic has. Messages that all groups have acked go when their ledger is
// closed, which by default takes ten minutes at least, unless the option retention or a policy of the namespace keeps them.
//
// Message.Headers are Pulsar's properties, by name, as the client keeps them in a map. A message without a body and without properties is sent
// with the property xk6-broker-empty, because the client takes it for corrupt otherwise when it comes, and acknowledges it unseen.
//
// # Connection string
//
//	pulsar://host1:6650,host2:6650?adminUrl=http://host1:8080&namespace=tenant/namespace
//	pulsar+ssl://host:6651?tlsCA=ca.pem&tokenFile=token
//	pulsar-failover://host:6650
//
// A topic is named by itself, which is one of the namespace, or in full: persistent://tenant/namespace/topic. Those of non-persistent:// are
// delivered at most once, whatever is claimed. The client connects to the addresses that the brokers advertise. Topics are created, deleted,
// described and counted by the admin API, which is HTTP; sending to a group's consumers and receiving does without. A token, or user and
// password (basic authentication), or else the certificate of tlsCert says to both who it is. Opening a connection asks a broker for a topic, on
// which nobody needs rights, and fails within connectTimeout.
//
// # Confirm means
//
// That as many bookies as the topic's ack quorum says have the message. Which that is the admin API tells of each topic; where it is 1, as in
// standalone, or is not told, it is Accepted. Whether bookies have their journals on disk by then (journalSyncData, which standalone has off)
// cannot be found out by clients. Of a non-persistent topic it says that the broker had it.
//
// A settlement is confirmed, where that is asked for, by the broker's answer to the ack; a requeue has no answer.
//
// # Limits
//
// Defaults of the client that distort a measurement, and what stands here instead: it batches for 10 ms (off; in profile throughput 1 ms),
// groups acks for 100 ms (off; 5 ms), gives back after a minute (9 ms), waits up to a minute to connect again (1 s), closes idle connections
// after 3 minutes (never), blocks in SendAsync at 1000 messages or 64 MiB (never: the engine's window is the only one), and logs (never).
//
// What cannot be turned off: when a connection breaks the client connects again and sends again what was not confirmed, with the time in the
// message's publish time, until sendTimeout fails it. Such a message may be in the topic twice unless the namespace deduplicates, and one that
// has failed may be there too. A lookup that fails is tried again after 100 ms, 200 ms and so on, for operationTimeout: after a server came
// back connecting may take half of that longer. Of a topic that is deleted and created again by the same name, messages fail until the
// producer is open again, within a second, and an open consumer receives all. The client then leaves one goroutine that waits for ever, and
// one of each closed producer for up to sendTimeout.
//
// Whom a broker refuses the client asks again, up to six times in operationTimeout, after the connection has failed.
//
// A broker whose allowAutoTopicCreation is on, as it is by default, creates a topic that is not there, without partitions, for who sends or
// subscribes: also one that was deleted while somebody was connected to it.
//
// Prefetch bounds what is with a consumer and not settled: the client's permits are given back when messages are settled, but for some, which it
// keeps until they are many. A consumer that holds seven eighths of its prefetch may get nothing more until it has settled some; of a prefetch of
// up to 15 it gets all. The client's queue is a quarter of it: who wants throughput first takes a prefetch of some thousands. Of several partitions each may have a quarter of the prefetch with the consumer beside that. Where producers batch, the broker delivers whole batches, so that more may come. Acks of parts of a batch outlive the consumer only
// where the brokers' acknowledgmentAtBatchIndexLevelEnabled is on. A requeue gives back the whole batch. The broker counts a backlog in
// entries: batches are looked into for it, up to 10,000 entries of a partition (subscriptionBacklogScanMaxEntries), and one that is settled in
// part counts as a whole.
//
// A broker notes how far a group has acked from time to time only, in standalone every ten seconds (managedLedgerDefaultMarkDeleteRateLimit):
// one that is killed delivers again what was acked since, confirmed or not. As attempts are not told, these count as duplicates.
//
// Where a consumer follows the last one of a failover subscription at once, a broker (4.0.8) that is short of processors may forget to read what was not
// acked, which then comes with the next message that is sent: until then it is in the backlog, and nothing is lost.
//
// Transactions, schemas, chunks of large messages and compacted topics are left out. Partitions that are added to a topic are found within a
// minute. PurgeTopic keeps what is in the ledger that is open, for groups that begin at the earliest. MaxMessageBytes is the default of the
// brokers' maxMessageSize. deliverAfter is of use with pulsar only, and does not come with what is received. A message's timestamp is the
// producer's, in whole ms, unless brokers add theirs (AppendBrokerTimestampMetadataInterceptor).
//
// # As
//
// A connection lends its pulsar.Client, a producer its pulsar.Producer and a consumer its pulsar.Consumer, whose messages nobody else may
// take. Of a producer or consumer whose topic was created again there is another.
package pulsar
