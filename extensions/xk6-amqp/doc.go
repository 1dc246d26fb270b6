// Package amqp drives RabbitMQ over AMQP 0-9-1, with the client library github.com/rabbitmq/amqp091-go. It registers three
// drivers, because RabbitMQ delivers in three ways:
//
//   - rabbitmq: a topic is a queue, classic or quorum (option queueType), and the queue is one shared flow. Consumers of
//     one group, or of none, share its messages. A queue knows of no groups, so that two groups on one queue are refused,
//     as far as one connection sees them.
//   - rabbitmq-pubsub: a topic is an exchange of its name, fanout unless exchangeType says otherwise. Each group has a
//     durable queue of its own, TOPIC.GROUP, declared and bound by its first consumer; a consumer without a group has a
//     temporary one. What is sent before a group's first consumer is not the group's, and what nobody listens to is dropped.
//   - rabbitmq-stream: a topic is a stream queue, a replicated log that every consumer reads for itself and that keeps its
//     messages.
//
// A rabbitmq or rabbitmq-stream producer publishes through the default exchange straight to the queue, as RabbitMQ's own
// PerfTest does. With the option exchange it goes through an exchange, which is created and bound with the topic;
// bindings, routingKey and routeByKey say by which keys. An exchange of type headers goes by the arguments of its bindings.
//
// # Delivery
//
// Queues deliver at least once, in the order of one producer as long as nothing is requeued or lost on the way. Ack,
// Requeue (basic.nack with requeue) and Reject (without; to the dead letter queue, if there is one) are sent and never
// answered: AMQP 0-9-1 has no confirmation of them, and a method that is answered on the same channel proves only that the
// channel has read them, not the queue. One frame settles all messages without a gap before them, which is what a consumer
// does that settles in order; only what comes out of order costs a frame for each. To settle twice is refused here,
// because the broker would close the channel over it.
//
// Attempt is x-delivery-count + 1 on quorum queues, and 1 or 2 (delivered before) on classic ones.
//
// A stream's consumer has no position at the broker: a new one begins at new or earliest, and one that loses its
// connection goes on behind what Receive gave last. Ack only makes room for more messages than the prefetch.
//
// Prefetch (basic.qos) is always set: without it the client library would buffer without bound. Received is taken when the
// library gives a delivery away, by a goroutine that does nothing else, so that it does not depend on when the consumer asks
// for the next batch.
//
// Client and broker have request and reply by direct reply-to (amq.rabbitmq.reply-to). A request that no queue takes fails
// as not_found.
//
// # Connection string
//
//	rabbitmq://user:password@host1:5672,host2:5672/vhost?heartbeat=10s
//
// The schemes are rabbitmq, amqp, amqps and rabbitmq+tls; rabbitmq-pubsub and rabbitmq-stream, each also with +tls. The
// user is guest where none is named, the port 5672, or 5671 with TLS, and the vhost "/" where the path is empty. Of several
// hosts the first that answers is used, at the start and again whenever the connection is lost. TLS is on by scheme or by
// tls=true; tlsCA, tlsCert, tlsKey, tlsServerName and tlsInsecure refine it, and sasl=external logs in by certificate.
//
// A connection is two AMQP connections, because the broker slows down and blocks whole connections that publish: one only
// for publishing, which the first producer opens, and one for all else. Every producer and consumer has a channel of its
// own. A connection that breaks is dialed again and channels are opened again in the background, at once and then after 25
// ms to 1 s. Until then Send fails at once as disconnected, nothing is buffered and nothing is sent twice; what was in
// flight fails with the reason, though the broker may have it. The library's own recovery is off, and it has no retries.
//
// The library writes to the network with a system call for each message, under a lock that its closing needs too. This
// package puts a buffer between them, which a goroutine writes out as soon as it runs: nothing waits in order to be
// batched, and a server that stops reading hangs nothing. Above 256 KiB unwritten, Send waits.
//
// # Confirm means
//
// Every producer uses publisher confirms. A classic queue confirms when its one node has the message, on disk if the queue
// is durable and the message persistent (both the default); a quorum queue when a majority of its members has it on disk; a
// stream when a majority of its replicas has it. Features says Accepted for queues, as the default is a classic one;
// profile=durable makes quorum queues. How many members they have is at most the topic's replicas, and RabbitMQ does not
// tell: it is Replicated where the topic was created with several replicas and the URL names several nodes, else Accepted.
// What a queue is that the test did not create, or that a routing key leads to, it does not tell either: Accepted.
//
// Messages are published as mandatory: one that no queue takes fails as not_found (312 NO_ROUTE), although the broker
// confirms it. Not so in rabbitmq-pubsub, where a topic without listeners is no mistake. basic.nack, from a full queue
// with overflow=reject-publish, is of kind rejected.
//
// While the broker is low on memory or disk it blocks publishers (connection.blocked). Messages then wait, and their
// latency shows it; those still waiting when the producer closes fail as throttled. With blocked=fail each message fails as
// throttled at once. The flow control by which RabbitMQ slows single connections down has no sign in the protocol but
// that it reads more slowly.
//
// # Limits
//
//   - Bodies over maxMessageBytes, 16 MiB as in RabbitMQ 4, are refused in the client: the broker would close the channel,
//     and all that is in flight on it would fail. Older versions take 128 MiB; then raise the option.
//   - Names of topics, headers and routing keys have at most 255 bytes, and all headers of a message together fit into one
//     frame (frameMax). Prefetch is at most 65535.
//   - Header values are sent as long strings of any bytes, and those of the property typedHeaders as numbers (signed, of 64 bits, or double) and booleans; of what comes, scalars are given as text, and tables and arrays
//     are left out. The order of headers and all but the last of equal names are lost.
//   - A channel that is opened on a quorum queue between the death of its leader and the election of the next may be answered with nacks for good
//     (seen with 3.10.8, where a fresh channel works): sends then fail as rejected until the connection breaks again.
//   - Nothing confirms an ack. A quorum queue takes them one after another, and a broker under load forgets those that it has not come to when the consumer closes
//     (seen with 3.10.8 at a load of 30 on 2 CPUs: up to 200 of 300 were delivered again, all of which had been acked in time): they are delivered to others, and
//     counted as redelivered and duplicated.
//   - Keys are not kept. With an exchange, routeByKey makes a message's key its routing key, which consumers see as Key.
//     The account does not know the bindings: a group expects all that was sent to its topic. Where keys decide who gets a message, which is in every
//     exchange but a fanout, and where routingKey or bindingKey is given, it is uncertain of what a group did not get whether it was for others, or is lost.
//   - CreateTopic fails as rejected where the topic exists with other properties. DeleteTopic leaves dead letter queues and
//     exchanges of the option exchange, which others may use; in pubsub it deletes the queues of those groups that the
//     connection has seen. A stream cannot be purged.
//   - Backlog is what the broker says is ready, and what it has delivered to this process's consumers and they have not settled, whichever
//     connections they are on, as long as one host and the virtual host are named alike. What other processes hold is not in it, since AMQP tells only
//     of ready messages: while there are consumers of theirs it is an estimate, by which nothing is called lost, and what a client holds that is no
//     consumer (basic.get, the management's "Get messages") counts as lost, which a note in the verdict says; nor, for a moment, what was just given back, which a quorum queue gets some time after the consumer has closed. Of what is
//     delivered while others are settled, some may be counted twice.
//
// # As
//
// A connection lends the *amqp091.Connection that consumers use, and producers and consumers their *amqp091.Channel. Each is the current one:
// after a reconnection there is another.
package amqp
