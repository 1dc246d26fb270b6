// Package rocketmq registers the driver rocketmq, for Apache RocketMQ 5 over gRPC.
//
// It uses the protocol's stubs of Apache's Go client, and not that client's Producer and
// SimpleConsumer, which report refused acks as success, ask one queue after the other, leak
// goroutines and connections, and write a log to the disk.
//
// # Delivery
//
// A consumer is a simple consumer of RocketMQ. Settlements are confirmed: Ack acknowledges with one
// request for a batch; Requeue changes the invisible time to requeueDelay, and the broker delivers
// again some seconds later; Reject moves the message to the group's dead letters.
//
// A message that is not settled within invisibleTime is delivered again. A consumer that closes gives
// back its unsettled messages. After maxAttempts redeliveries the broker moves a message to the dead
// letters; the number belongs to the group and is set when this driver creates it.
//
// A consumer asks each broker of a topic separately, with receives requests at a time. createTopic
// creates topics and NewConsumer groups, by RocketMQ's remoting protocol. A consumer without a group
// has its own, which it deletes when it closes.
//
// The option messageType is the type of a topic:
//
//   - normal: no order. The key is the message's key (KEYS).
//   - delay: all messages have deliverAfter.
//   - mixed: both, if the broker's enableMixedMessageType is on.
//   - fifo: the key is the message group, which chooses the queue. Messages of a producer and queue
//     are delivered in order; messages without a key are one group.
//
// Headers are the user's properties: text, each name once. The broker refuses empty bodies and
// values, so these are sent as properties xk6-broker-empty. A partition is a queue; the queues are
// numbered in the order of the brokers' names.
//
// # Connection string
//
//	rocketmq://host1:8081,host2:8081?nameServer=host:9876
//	rocketmq://accessKey:secretKey@host:8081?tls=true
//
// The hosts are proxies. The first that answers returns the addresses for messages, unless endpoints
// is "url". Without a name server only producers can be opened.
//
// # Confirm means
//
// The master of the queue's broker has the message: in memory with flushDiskType ASYNC_FLUSH, the
// default, on disk with SYNC_FLUSH. With SYNC_MASTER and inSyncReplicas it is replicated. The
// settings are read when a producer opens.
//
// # Limits
//
//   - A send whose connection broke may have arrived. Messages of one request (batch) share its fate.
//   - A server that waits for messages continues when the consumer is gone, and leases the next
//     message for invisibleTime. So Close waits for the server's answer, up to pollTime.
//   - With prefetch 1 a message may wait for the end of a poll, because a server misses messages that
//     arrive just before it begins to wait.
//   - The backlog does not include leased messages, except of fifo topics.
//   - A topic cannot be purged. A broker that was killed may deliver acked messages again.
//   - Transactions, lite topics, priorities and SQL filters are not supported.
package rocketmq
