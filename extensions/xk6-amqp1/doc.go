// Package amqp1 drives brokers over AMQP 1.0, the protocol of Apache Artemis, RabbitMQ 4, Apache Qpid, Azure Service Bus and others, with the client
// library github.com/Azure/go-amqp. It registers two drivers, because these brokers deliver in two ways:
//
//   - amqp1: a topic is a queue (anycast), and the queue is one shared flow: all its consumers compete for its messages.
//   - amqp1-pubsub: a topic is an address that copies (multicast). Each group has a subscription, TOPIC.GROUP, which its consumers share and which stays
//     when they leave; a consumer without a group has one of its own, which goes with it. What is sent before a group's first consumer is not the group's.
//
// # Delivery
//
// Messages go unsettled, and the broker answers for each: any number are under way at a time, as far as the broker gives credit. The client library
// writes each to the network by itself before it takes the next, and tells of answers one by one: a message whose answer comes before an earlier one's is
// confirmed when that has come too.
//
// A consumer's prefetch is the credit that it gives, and gives again as messages are settled: a quarter of it at a time, or at once where the broker has none
// left and nothing waits. Each settlement is a frame of its own: Ack accepts, Requeue modifies as failed (the option requeue says otherwise), Reject
// rejects, upon which Artemis has a message in the queue's dead letter address. A consumer that closes gives back what was received as failed, and what
// was not as if it had not been delivered. Attempt is the header's delivery-count + 1.
//
// Settlements are confirmed where that is asked for (rcv-settle-mode second), by brokers that can. Artemis and RabbitMQ 4.0 cannot: their consumers are
// refused then, as unsupported. What was settled in the last moments before such a broker is killed may come again.
//
// The key is the annotation x-opt-partition-key, headers are application properties: text where they are UTF-8, else bytes.
//
// A request's reply comes to a node that the broker makes for the producer's link (a dynamic source), at RabbitMQ to a queue of the connection's own; the
// consumer sends it over a link that goes to no address of its own (an anonymous terminus). Brokers that have neither, as Azure Service Bus, refuse.
//
// # Connection string
//
//	amqp1://user:password@host1:5672,host2:5672
//	amqp1+tls://KEY-NAME:KEY@NAMESPACE.servicebus.windows.net
//	amqp1://guest:guest@127.0.0.1/vhost
//
// The schemes are amqp1 and amqp1-pubsub, each also with +tls. The port is 5672, or 5671 with TLS. Of several hosts the first that answers is used, at the
// start and again whenever the connection is lost. Without a user one logs in as nobody (SASL ANONYMOUS). A path is RabbitMQ's virtual host.
//
// A connection that breaks is dialed again, by a producer when it has something to send, by a consumer at once and then after 25 ms to 1 s. What was in
// flight fails with the reason, though the broker may have it; nothing is sent twice. A link that the broker detaches is opened again in the same way.
//
// # Addresses
//
// The address of a topic is its name, at RabbitMQ /queues/NAME or /exchanges/NAME (its addresses of version 2), and otherwise as the option address says. A
// link says that it means a queue or a topic (the capabilities queue and topic), and of a group's subscription that it is shared (shared, global), as AMQP's
// bindings of JMS do: Artemis and Qpid go by that. Where subscriptions are made by other means, as at Azure Service Bus, the option groupAddress says where
// they are.
//
// # Topics
//
// AMQP 1.0 has no word for making a queue, so brokers are asked in their own ways, by messages over the same connection:
//
//   - Artemis at its management address, activemq.management, for users who may manage: createTopic makes an address, of type anycast with the queue of its name, or
//     multicast. Deleting and purging are of the address with all its queues. Backlog is the count of the queue, the messages that consumers hold among them.
//   - RabbitMQ 4 at /management: createTopic declares a queue (queueType), or a fanout exchange, to which a consumer binds the queue of its group, TOPIC.GROUP,
//     classic and durable, or one of its own. Deleting and purging an exchange reach the queues of those groups that the connection has seen. Backlog is what is
//     ready in the queue and what the consumers of this process hold: not what those of others do, nor what is just on its way to a consumer.
//
// createTopic fails where there is a topic of the name with other settings. At other brokers it does nothing, and the other verbs are unsupported: topics are
// made with the broker's own tools.
//
// # Confirm means
//
// The outcome is accepted: the broker is responsible for the message from then on. Artemis accepts a persistent message when it is in the journal, on disk
// as far as its journal-sync settings say, and on the backup where there is one; RabbitMQ when the queues have it, a quorum queue on a majority of its
// members. AMQP tells nothing of that, so nothing more than accepted is claimed. Of a queue that is not durable (the option durable of a topic) a restart
// leaves nothing, persistent or not, and what a confirmation proves says so: Artemis is asked, of RabbitMQ it is known where this test created the queue.
//
// An outcome released (RabbitMQ: no queue takes it) is an error of kind not_found, but not of an exchange, where a topic without listeners is no mistake.
// Rejected, as by a queue that is full, is of kind rejected, or throttled where the broker says that a limit is reached. Where the broker gives no credit,
// as Artemis for an address that is full and blocks, messages wait, and their latency shows it.
//
// # Limits
//
//   - The size of a message is the broker's: what is larger than it says is refused in the client, as rejected. Artemis has no limit; Azure's is 256 KiB or 1 MiB.
//   - What becomes of a message that is rejected, or given back too often, is the broker's: Qpid's queues deliver it again unless they are told otherwise.
//   - The order of headers and all but the last of equal names are lost. A body that is a value comes as its text, one that is a sequence as none.
//   - delay is a matter of annotations, x-opt-delivery-delay and x-opt-scheduled-enqueue-time, which a broker that does not know them passes over.
//   - A group's subscription takes the option selector from its first consumer.
//   - Attempt knows no more than once and again at a classic queue of RabbitMQ.
//   - RabbitMQ 4.0 now and then passes over the beginning of a session on a channel whose last one has just ended: it is begun again after a second.
//   - Where the settings of Artemis's address have it DROP what comes when the address is full, it accepts that and drops it.
//   - The tests run on Artemis, and on RabbitMQ 4 where BROKER_RABBITMQ4 names one. What is said of Qpid and Azure Service Bus is by their documentation: they were not tried.
//   - Transactions and messages that are settled when they are sent are not used.
//
// # As
//
// A connection lends the *amqp.Conn, producers and consumers their *amqp.Sender and *amqp.Receiver. Each is the current one: after a reconnection there is
// another.
package amqp1
