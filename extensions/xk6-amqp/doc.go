// Package amqp drives RabbitMQ over AMQP 0-9-1, with the client library
// github.com/rabbitmq/amqp091-go. It registers three drivers, because RabbitMQ delivers in three
// ways:
//
//   - rabbitmq: a topic is a queue, classic or quorum (option queueType). All consumers of the
//     queue share its messages, so it has one group: a second one is refused, as far as one
//     connection sees both.
//   - rabbitmq-pubsub: a topic is an exchange, fanout unless exchangeType is set. Each group has a
//     durable queue TOPIC.GROUP, declared and bound by its first consumer; a consumer without a
//     group has a temporary one. The exchange drops messages without a queue.
//   - rabbitmq-stream: a topic is a stream queue, a replicated log that every consumer reads on its
//     own.
//
// A rabbitmq or rabbitmq-stream producer publishes through the default exchange to the queue, as
// RabbitMQ's PerfTest does. With the option exchange it publishes through an exchange, which is
// created and bound with the topic by the options bindings, routingKey and routeByKey.
//
// # Delivery
//
// Queues deliver at least once, in the order of one producer while nothing is requeued or lost.
// Ack, Requeue (basic.nack with requeue) and Reject (without; to the dead letter queue if there is
// one) are sent and never answered: AMQP 0-9-1 has no confirmation of them. One frame settles all
// messages without a gap before them. A second settlement is refused here, because the broker would
// close the channel.
//
// Attempt is x-delivery-count + 1 on quorum queues, and 1 or 2 (delivered before) on classic ones.
//
// A stream's consumer has no position at the broker. After a lost connection it continues behind
// the last message that Receive returned. Ack only makes room in the prefetch.
//
// Prefetch (basic.qos) is always set. Received is the time when the library passes a delivery to a
// goroutine of its own, before Receive is called.
//
// Request and reply are RabbitMQ's direct reply-to (amq.rabbitmq.reply-to). A request that no queue
// takes fails as not_found.
//
// # Connection string
//
//	rabbitmq://user:password@host1:5672,host2:5672/vhost?heartbeat=10s
//
// The schemes are rabbitmq, amqp, amqps, rabbitmq+tls, rabbitmq-pubsub and rabbitmq-stream, the
// last two also with +tls. Defaults are the user guest, the port 5672 (5671 with TLS) and the vhost
// "/". The first host that answers is used, also after a lost connection. sasl=external logs in by
// certificate.
//
// A connection is two AMQP connections, one for publishing and one for the rest, because the broker
// slows down and blocks whole connections that publish. Every producer and consumer has a channel.
// A broken connection is dialed again in the background, after pauses up to 1 s. Meanwhile Send
// fails as disconnected. Messages in flight fail, although the broker may have them. The library's
// own recovery is off.
//
// The library writes each message with a system call, under a lock that its closing needs too. This
// package puts a buffer between them, which a goroutine writes at once. Above 256 KiB Send waits.
//
// # Confirm means
//
// Every producer uses publisher confirms. A classic queue confirms when its node has the message,
// on disk if queue and message are durable (the default). A quorum queue confirms when a majority
// of its members has it on disk, a stream when a majority of its replicas has it. RabbitMQ does not
// return the number of members: the proof is Replicated if the topic was created with several
// replicas and the URL names several nodes, else Accepted. It is Accepted too for a queue that the
// test did not create, and for exchanges.
//
// Messages are mandatory: one without a queue fails as not_found (312 NO_ROUTE), although the
// broker confirms it. In rabbitmq-pubsub they are not. basic.nack, from a full queue with
// overflow=reject-publish, is of kind rejected.
//
// While the broker is low on memory or disk it blocks publishers (connection.blocked). Messages
// wait, and those still waiting when the producer closes fail as throttled. With blocked=fail each
// message fails at once. The flow control of single connections is not visible in the protocol.
//
// # Limits
//
//   - Bodies over maxMessageBytes, 16 MiB as in RabbitMQ 4, are refused in the client, because the
//     broker would close the channel. Older versions accept 128 MiB.
//   - Names of topics, headers and routing keys have at most 255 bytes, and the headers of a
//     message fit into one frame (frameMax). Prefetch is at most 65535.
//   - Header values are sent as long strings, and typedHeaders as 64-bit numbers and booleans.
//     Received scalars are converted to text, tables and arrays are left out. The order of headers
//     and all but the last of equal names are lost.
//   - A channel opened on a quorum queue between two leaders may be answered with nacks for good
//     (seen with 3.10.8). Sends then fail as rejected until the connection breaks.
//   - A quorum queue under load forgets acks that it has not applied when the consumer closes (seen
//     with 3.10.8). The messages are delivered again, and counted as redelivered and duplicated.
//   - Keys are not kept. With routeByKey a message's key is its routing key. If keys or bindings
//     decide which group gets a message, missing messages are uncertain.
//   - CreateTopic fails as rejected if the topic exists with other properties. DeleteTopic leaves
//     dead letter queues and exchanges. In pubsub it deletes the queues of groups that the
//     connection has seen. A stream cannot be purged.
//   - If a topic is deleted and created again, open consumers of a stream or an exchange miss its
//     messages.
//   - Backlog counts the ready messages and the ones at this process's consumers, if the
//     connections name one host and virtual host alike. If other processes have consumers it is an
//     estimate. A client that is no consumer (basic.get) is not seen: its messages count as lost,
//     with a note. Messages delivered while others are settled may count twice.
//
// # As
//
// A connection lends the *amqp091.Connection of its consumers. A reconnection replaces it.
package amqp
