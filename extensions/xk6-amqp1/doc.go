// Package amqp1 drives brokers over AMQP 1.0, the protocol of Apache Artemis, RabbitMQ 4, Apache
// Qpid, Azure Service Bus and others, with the client library github.com/Azure/go-amqp. It
// registers two drivers:
//
//   - amqp1: a topic is a queue (anycast), whose consumers share its messages.
//   - amqp1-pubsub: a topic is an address that copies (multicast). Each group has a durable
//     subscription, TOPIC.GROUP, which its consumers share; a consumer without a group has one of
//     its own. A group does not get messages sent before its first consumer.
//
// # Delivery
//
// Messages are sent unsettled, and the broker answers each. The client library writes each message
// to the network before it takes the next, and reports the answers in the order of sending: a
// message answered before an earlier one is confirmed after it.
//
// The prefetch is the credit of the link. Ack accepts, Requeue modifies as failed (see the option
// requeue), Reject rejects: Artemis moves the message to the queue's dead letter address. Attempt
// is the header's delivery-count + 1.
//
// Settlements are confirmed on request (rcv-settle-mode second) by brokers that support it. Artemis
// and RabbitMQ 4.0 do not, and refuse such consumers. If such a broker is killed, the last settled
// messages may be delivered again.
//
// The key is the annotation x-opt-partition-key, headers are application properties: text if they
// are UTF-8, else bytes.
//
// # Connection string
//
//	amqp1://user:password@host1:5672,host2:5672
//	amqp1+tls://KEY-NAME:KEY@NAMESPACE.servicebus.windows.net
//	amqp1://guest:guest@127.0.0.1/vhost
//
// The schemes are amqp1 and amqp1-pubsub, each also with +tls. The port is 5672, or 5671 with TLS.
// The first host that answers is used, also after a lost connection. Without a user the login is
// SASL ANONYMOUS. A path is RabbitMQ's virtual host.
//
// A broken connection is dialed again, by a producer for its next message, by a consumer after
// pauses up to 1 s. Messages in flight fail, although the broker may have them. A detached link is
// opened again in the same way.
//
// # Addresses and topics
//
// The address of a topic is its name, at RabbitMQ /queues/NAME or /exchanges/NAME, or set by the
// option address. Links have the capabilities queue, topic, shared and global of AMQP's bindings of
// JMS, which Artemis and Qpid use. The option groupAddress is the address of a subscription made by
// other means, as at Azure Service Bus and RabbitMQ.
//
// AMQP 1.0 cannot create topics. At Artemis the driver sends messages to the management address,
// activemq.management: createTopic makes an anycast address with a queue, or a multicast address,
// and fails if it exists with other settings. Deleting and purging include all queues of the
// address. Backlog is the queue's count, including the messages at consumers. At other brokers
// createTopic does nothing and the rest is unsupported.
//
// # Confirm means
//
// The outcome is accepted: the broker is responsible for the message. Artemis accepts a persistent
// message when it is in the journal, on disk according to its journal-sync settings; RabbitMQ when
// the queues have it. AMQP does not return more. A restart of the broker loses the messages of a
// queue that is not durable.
//
// The outcome released (no queue takes it) is an error of kind not_found, but not for an exchange
// of RabbitMQ. Rejected, as by a full queue, is of kind rejected, or throttled if the broker names
// a limit. If the broker gives no credit, messages wait.
//
// # Limits
//
//   - The broker limits the size of messages: a larger one is refused in the client. Artemis has no
//     limit, Azure 256 KiB or 1 MiB.
//   - The order of headers and all but the last of equal names are lost. A value as body is
//     converted
//     to text, a sequence is left out.
//   - delay is annotations, x-opt-delivery-delay and x-opt-scheduled-enqueue-time, which some
//     brokers
//     ignore.
//   - A group's subscription keeps the option selector of its first consumer.
//   - Attempt is 1 or 2 (delivered before) at a classic queue of RabbitMQ.
//   - An address of Artemis with the setting DROP accepts messages and drops them when it is full.
//   - Request and reply use two topics and headers, not a reply node of the broker.
//   - The tests run on Artemis. Other brokers were not tried.
//
// # As
//
// A connection lends the *amqp.Conn. A reconnection replaces it.
package amqp1
