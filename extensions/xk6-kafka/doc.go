// Package kafka has three drivers for Apache Kafka and servers that speak its protocol, over
// franz-go:
//
//   - kafka: partitioned topics and consumer groups, which commit offsets.
//   - kafka-share: share groups (KIP-932, Kafka 4.2 and later), which settle each message.
//   - kmq: SoftwareMill's KMQ, which settles each message over a consumer group of any Kafka, by a
//     topic of markers.
//
// # Delivery
//
// All deliver at least once. With kafka, order holds within a partition. Keys choose partitions as
// in Kafka's own client, unless the message has the property partition. A consumer without a group
// reads all partitions from explicit offsets and settles nothing. A group's commits are cumulative
// and never pass an unsettled message, so messages settled behind a gap are delivered again after
// the member closed. There is no requeue and no reject. A group that starts with new messages
// commits the ends of the partitions before it reads. If the group has members already, they commit
// the ends, and a consumer is ready when that is done for each partition of its topic.
//
// With kafka-share each message is acked, given back (Requeue) or refused (Reject) on its own, in
// any order. The broker counts deliveries and drops a message after five of them, and delivers a
// message again that is not settled within its lock (30 s). The group's beginning is set in its
// offsets. If the group has members on other topics, share.auto.offset.reset must match the option
// start. Without a group all consumers of a topic share the group "xk6-broker-" and its name.
//
// With kmq a consumer writes a start marker for each polled message, waits for the broker, commits,
// and then hands the messages over. An ack is an end marker. A tracker in each consumer reads the
// markers of the partitions that the group "<group>__redelivery" assigns it. If a start marker is
// older than redeliverAfter, the tracker sends the message again to the end of its partition, with
// key, body, headers and two headers of the protocol, which consumers count and do not show.
// Requeue sends the message again at once. Reject and maxAttempts end it, and send it to
// deadLetterTopic if there is one. The markers are in topic "<topic>__markers__<group>". A consumer
// that closes sends its unsettled messages again. Other groups skip such a copy if they use this
// driver. Any other reader gets it twice.
//
// # Connection string
//
//	kafka://user:password@host1:9092,host2:9092?option=value
//	kafka+tls://host:9093?tlsCA=ca.pem&tlsCert=client.pem&tlsKey=client-key.pem
//	kafka-share://host:9092
//	kmq://host:9092
//	redpanda://host:9092
//
// Redpanda is a scheme of kafka. The driver recognizes Redpanda by its cluster id and is not proven
// on a real server.
//
// A user in the URL authenticates by SASL PLAIN. The option sasl selects SCRAM-SHA-256 or -512, and
// token or tokenFile select OAUTHBEARER. Opening a connection asks the cluster for its brokers and
// fails within connectTimeout. Each producer and each consumer has its own connections.
//
// # Confirm means
//
// With acks=all (the default) all in-sync replicas have the message in memory, at least
// min.insync.replicas of them. With acks=leader the leader has it, with acks=none the operating
// system. A confirmed settlement was answered by the broker: the commit, the acknowledgement, or
// kmq's end marker. Without confirmation kafka commits every commitInterval, kmq sends end markers
// at once, and kafka-share sends acks with the next fetch, after a second at the latest. The next
// Settle or Close returns their errors.
//
// # Limits
//
// Defaults of franz-go that would distort a measurement are replaced: linger (0), compression
// (none), the limit of buffered messages (none), the time of delivery (deliveryTimeout), one
// partition for 64 KiB of keyless messages (until the batch is sent), the age of metadata (100 ms),
// the pause after failures (1 s at most), idle connections (9 minutes), client metrics (none). A
// new producer has its partitions, connections and producer id before its first message.
//
// As every Kafka producer, the client retries until deliveryTimeout. The time is in the message's
// publish time. A message at a silent broker may fail up to 20 s later. With retries=0 the first
// failure fails all messages buffered for its partition, and messages after it may wait for a
// request without records, which Kafka 4.3 does not answer. Idempotence does not hold for a message
// that failed and is sent again by the user. Without idempotence retries may duplicate and reorder.
//
// Requests other than produce and fetch are retried for requestTimeout. Consumers reconnect on
// their own, and Receive waits meanwhile.
//
// Prefetch bounds the received and unsettled messages, fetchMaxBytes the further fetched bytes.
// With kafka-share each fetch brings at most a quarter of the prefetch, and only while Receive
// waits. An acknowledgement cannot overtake a fetch, so it may wait for fetchMaxWait. The broker
// lends at most 2000 messages of a partition (group.share.partition.max.record.locks). A member
// that is not the first may wait for its second heartbeat (5 s). If the group has members on other
// topics, a consumer is ready when its fetches were answered twice, but partitions that another
// process opens at the same time may begin later.
//
// With kmq redeliverAfter begins at the poll and includes the wait in the prefetch. If no marker
// came for a second, trackers compare the broker's clock with this machine's. The messages of a
// killed consumer are sent again after redeliverAfter and sessionTimeout. A late settlement does
// not stop a redelivery that has begun. Markers and commits are round trips in the delivery wait.
// The backlog includes copies for other groups. Batches are at most 1047564 bytes. DeleteTopic and
// PurgeTopic include the markers. The broker's retention must be longer than redeliverAfter.
//
// Groups read added partitions from their beginning, consumers without a group do not read them. If
// a topic is deleted and created again, open producers and consumers fail until they are opened
// again. An open consumer of a share group receives nothing more, and its backlog is not known.
// MaxMessageBytes is for a message without key and headers. There are no transactions and no
// request/reply of Kafka's own. A message's timestamp is the producer's unless the topic's
// message.timestamp.type is LogAppendTime.
//
// # As
//
// A connection lends its *kgo.Client and its *kadm.Client.
package kafka
