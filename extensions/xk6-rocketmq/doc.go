// Package rocketmq holds the driver rocketmq, for Apache RocketMQ 5 over gRPC.
//
// It speaks the protocol by the stubs that Apache's Go client github.com/apache/rocketmq-clients/golang/v5 has in its package protocol, and not by that
// client's Producer and SimpleConsumer: of an ack that the server refuses those say that it succeeded, they tell no queue, ask one queue after the other,
// leave four goroutines and every connection of each producer and consumer behind, and write a log to the disk. These are the reasons, and not speed: no
// benchmark compares the two, and the hand-written loops that the driver is measured beside use the same stubs.
//
// # Delivery
//
// A consumer is what RocketMQ calls a simple consumer. Messages are delivered at least once, each to one consumer of a group, and settled by themselves:
//
//   - Ack acknowledges, by one request for a batch.
//   - Requeue changes the time for which the message is invisible, to the option requeueDelay: the broker has it again some seconds after that is over
//     (its reviveInterval and reviveScanTime), with one attempt more.
//   - Reject makes it a dead letter of the group's, in the topic %DLQ% and the group's name.
//
// Each is answered, and Settle waits for that. A message that is not settled within invisibleTime is delivered again; what a consumer has when it closes
// it gives back. After maxAttempts deliveries more than the first the broker makes it a dead letter; the number is the group's, and set when this driver
// makes that.
//
// Each broker of a topic is asked by itself, by as many requests at a time as receives says, and a request is answered with what any of the broker's
// queues has: one that is empty hides nothing. Where the prefetch has room for fewer messages than there are requests, some of them wait.
//
// A group must be there before its first consumer, and a topic before its first producer: createTopic makes topics and NewConsumer groups, by RocketMQ's
// remoting protocol, and gives a new group the place in each queue to begin at, its end or its first message. A consumer without a group has one of its
// own, which it deletes when it closes; one that was killed leaves it, named "xk6-broker-" and a number.
//
// Topics are of one type, the option messageType:
//
//   - normal: no order is kept. Message.Key is the message's key (KEYS), for the brokers' index.
//   - delay: messages that all have deliverAfter.
//   - mixed: both, where the broker's enableMixedMessageType is on.
//   - fifo: Message.Key is the message group, which chooses the queue; a producer's messages without a key are one group. Messages of one producer and
//     queue are sent one after the other, and delivered in order: of a queue a group has one request's messages at a time, and nothing more before all
//     of them are settled. So one that is given back is overtaken by those that came with it only. The driver claims no order, since it holds of these topics only. Their groups are in order (consumeMessageOrderly), others
//     are not, and one of the wrong kind is refused.
//
// Message.Headers are the user's properties: text, each name once. The broker takes no body and no property of no length, so these go as properties
// named xk6-broker-empty. The timestamp of a message is when the broker stored it; the position is its offset in its queue, and is told of a first
// delivery. A partition is a queue: they are numbered in the order of the brokers' names.
//
// # Connection string
//
//	rocketmq://host1:8081,host2:8081?nameServer=host:9876
//	rocketmq://accessKey:secretKey@host:8081?tls=true
//
// The hosts are proxies, of which the first that answers is asked where topics are; messages go to the addresses that it names, unless endpoints is
// "url". nameServer is asked for the brokers, and these for topics and groups. Without name servers that can be reached only producers can be opened.
//
// # Confirm means
//
// That the master of the queue's broker has the message, in memory where its flushDiskType is ASYNC_FLUSH, the default, and on disk where it is
// SYNC_FLUSH. Where brokerRole is SYNC_MASTER and inSyncReplicas more than 1 that many copies have it, and it is replicated. The settings are asked for
// when a producer opens.
//
// # Limits
//
// A message is never sent twice by the driver: one whose connection broke before the answer fails as disconnected, and may be in the topic. One that
// finds no connection waits for it within requestTimeout. Messages of one request, with batch more than 1, share its fate.
//
// A server that waits for messages for a consumer's sake goes on with it when the consumer is gone, takes the next message for nobody, and delivers it
// after invisibleTime. So a consumer that closes waits until the server has answered, up to pollTime, which servers do not let be less than 5 s by
// default (grpcClientConsumerMinLongPollingTimeoutMillis), or until the context of Close ends. After a connection broke, or a process died, such
// messages come late.
//
// A server that has looked for messages and found none misses one that comes just before it begins to wait. Another of the receives that are in flight
// takes it; where there is room for one only, with prefetch 1, it waits until pollTime is over (1 of 200 on a busy machine).
//
// Brokers tell of a group how far it has been delivered, so the backlog is what was not: what consumers hold, or is to be delivered again later, is
// not in it. Of fifo topics it is what is not settled.
//
// The broker drops messages when they are old (fileReservedTime), and a topic cannot be purged. Its positions and acks are written to disk from time to
// time: a broker that was killed may deliver again what was acked just before, confirmed or not.
//
// Transactions, lite topics, priorities and filters by SQL are left out.
//
// # As
//
// A connection lends its *grpc.ClientConn, to the server that answered first.
package rocketmq
