// Package kafka has three drivers for Apache Kafka and what speaks its protocol, over franz-go:
//
//   - kafka: partitioned topics and consumer groups, which commit offsets;
//   - kafka-share: share groups (KIP-932, Kafka 4.2 and later), which settle each message by itself;
//   - kmq: SoftwareMill's KMQ, which settles each message by itself over a consumer group of any Kafka, by a topic of markers.
//
// # Delivery
//
// All deliver at least once. With kafka, order holds within a partition, and keys choose partitions as Kafka's own
// client does, where a message does not choose one by its property partition. A consumer without a group reads all partitions by itself, from explicit offsets, and settles nothing. A
// group's commits are cumulative, and never pass a message that is not settled; an ack out of order is committed with
// the one that closes the gap. What a closed member has not settled, and what it has settled behind a gap, is delivered
// again. There is no requeue and no reject. A group that starts with new messages is anchored: before it reads it commits
// the ends of the partitions, so that nothing sent from then on is skipped. A group that has members already, as on other
// topics, lets only them commit; then a consumer is ready when each partition of its topic is anchored by who owns it.
//
// With kafka-share a message is acked, given back (Requeue) or refused (Reject) by itself, in no order; the broker
// counts deliveries, and gives a message up after five of them. What is not settled within the broker's lock (30 s) is
// delivered again. The group's beginning is set in its offsets, so that share.auto.offset.reset is not needed, unless the
// group has members on other topics already; then that config must be what the option start says: latest, as it is by
// default, for new. Without a group all consumers of a topic share the group "xk6-broker-" and the topic's name.
//
// With kmq a consumer writes a start marker for each message that it has polled, waits until the broker has all of them, commits, and only then has
// the messages received; an ack is an end marker. A tracker in each consumer reads the markers of the partitions that its own group, the consumers'
// with "__redelivery", gives it, and sends again, to the end of the same partition, each message whose start marker is older than redeliverAfter: with
// its key, body and headers, but at a position and a time of its own, and two headers of the protocol, which consumers of this driver count deliveries by and do not show. So order
// holds within a partition for what is delivered once. Requeue sends the message again at once, or lets the tracker do so after requeueDelay; Reject
// ends it, as maxAttempts does, after it was sent to deadLetterTopic where there is one. A consumer that closes sends again what it has not settled. What
// is sent again for one group is passed over by the others, if they are of this driver; anybody else who reads the topic gets it twice. Without a group
// all consumers of a topic share one, as with kafka-share.
//
// # Connection string
//
//	kafka://user:password@host1:9092,host2:9092?option=value
//	kafka+tls://host:9093?tlsCA=ca.pem&tlsCert=client.pem&tlsKey=client-key.pem
//	kafka-share://host:9092
//	kmq://host:9092
//	redpanda://host:9092
//
// Redpanda is a scheme of kafka for servers that speak its protocol; whether one is there is told by the cluster's id, which Redpanda begins with
// "redpanda.", whatever the scheme: the driver is not proven on a real server of it.
//
// A user in the URL authenticates by SASL PLAIN; the option sasl asks for SCRAM-SHA-256 or -512, and token or tokenFile
// for OAUTHBEARER. Opening a connection asks the cluster for its brokers and fails within connectTimeout. Each producer
// and each consumer has connections of its own.
//
// # Confirm means
//
// By default (acks=all) that all in-sync replicas have the message, at least min.insync.replicas of them; in memory, as
// Kafka leaves writing to disk to the operating system. With acks=leader the leader has it; with acks=none it was
// handed to the operating system. A settlement is confirmed, where that is asked for, by the broker's answer to the
// commit or to the acknowledgement, with kmq when it has the end marker. Otherwise kafka commits every commitInterval, and an error of such a commit comes
// out of the next Settle; kmq sends end markers at once, and an error of one comes out of the next Settle or of Close; kafka-share sends acks with the next fetch, after a second at the latest, and the rest at
// once.
//
// # Limits
//
// Defaults of franz-go that distort a measurement, and what stands here instead: it lingers 10 ms (0), compresses with
// snappy (none), stops at 50,000 buffered messages (never: the engine's window is the only one), delivers for ever
// (deliveryTimeout), sends keyless messages to one partition for 64 KiB (until its batch is sent), refreshes metadata
// at most every 5 s (100 ms), waits up to 5 s after failures (1 s), closes connections after 30 idle seconds (9
// minutes), and sends client metrics (none). A producer that has been made knows its partitions, is connected to them
// and has its producer id, so that no message pays for that.
//
// The client sends again what failed for a reason that may pass, as every Kafka producer does: the time is part of the
// message's publish time, and after deliveryTimeout it fails. A message that is with a broker which does not answer may
// fail later than that, by as long again and at most 20 s. With retries=0 the first failure fails the message and, as
// franz-go keeps the order, all that are buffered for its partition. It may then send a request without records, which
// Kafka 4.3 does not answer: messages after it wait for that request's timeout. Idempotence does not hold for a message
// that has failed: sent again by the user, it may be there twice. Without idempotence (also with acks=leader and
// acks=none), retries may duplicate and, with more than one request in flight, reorder.
//
// Requests other than produce and fetch are tried again for requestTimeout. A consumer reconnects by itself, and while
// it does so Receive only waits.
//
// Prefetch bounds what was received and is not settled; fetchMaxBytes bounds what the client has fetched beyond that.
// With kafka-share the fetches are bounded themselves: each brings at most a quarter of the prefetch, and only while
// someone waits in Receive and all of it may be kept. An acknowledgement cannot overtake a fetch, so it may wait for
// fetchMaxWait while Receive waits. The broker lends nothing that is 2000 messages
// (group.share.partition.max.record.locks) or more beyond the oldest unsettled one of a partition. A member of a share
// group that is not its first may wait for its second heartbeat, 5 s by the broker's default, until it has partitions.
// Where a share group has members on other topics already, the broker begins with a partition of a further topic when it
// is first fetched, and tells nobody. A consumer is ready then when its fetches have been answered twice; but partitions
// that the broker has given to a consumer of another process, which opens at the same time, may begin later than that.
//
// With kmq the time of redeliverAfter begins when a message is polled, so it runs while the message waits in the prefetch. Trackers compare the
// broker's clock, by which markers are stamped, with this machine's where no marker has come for a second: both must be right within redeliverAfter. What
// a consumer held that was killed is sent again after redeliverAfter, but not before the group has given its tracker's partitions to others, after
// sessionTimeout. A message that is settled after its time is over is received again all the same, and a tracker that dies between a copy and its end marker
// makes one more. The markers and the commit are round trips between the arrival of a message (received) and its handing over, and are in the delivery
// wait. The backlog is what is not committed and what has begun and not ended; copies for other groups count until they are passed over. A batch is limited
// to 1047564 bytes, so that a message with the protocol's headers fits into the broker's default. DeleteTopic and PurgeTopic take the topics of markers with
// them, and there is no limit to what these keep but the broker's retention, which must be longer than redeliverAfter.
//
// Partitions that are added to a topic are found by groups, from their beginning, and not by consumers without a group.
// Of a topic that is deleted and created again by the same name, the first message fails, for a producer that was open, and an
// open consumer receives all, a share group what is sent from some ten seconds later on.
// A member of a group with groupProtocol=consumer and an instanceId keeps its partitions until the broker's session
// timeout, whatever leaveOnClose says. MaxMessageBytes is for a message without key and headers. Transactions and
// request/reply, of which Kafka has no form of its own, are left out. A message's timestamp is its record's, which the
// producer makes unless the topic's message.timestamp.type is LogAppendTime.
//
// # As
//
// A connection, producer or consumer lends its *kgo.Client; a connection lends its *kadm.Client too.
package kafka
