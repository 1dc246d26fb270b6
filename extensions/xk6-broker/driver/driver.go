package driver

import (
	"context"
	"net/url"
)

// A Driver describes one delivery semantics of one broker: redis-streams and redis-pubsub are two drivers.
type Driver struct {
	// Name is the value of the metric tag "driver", such as "kafka" or "nats-jetstream".
	Name string
	// Schemes are the URL schemes that this driver answers to; the first is the canonical one.
	Schemes []string
	// Doc says in one sentence what the driver speaks to and how.
	Doc string
	// Features is what the driver claims; the conformance kit proves it.
	Features Features
	// Options are all the options that a URL or a script may set. See [Option].
	Options []Option
	// Open connects. It fails rather than waits when the server does not answer before ctx ends.
	Open func(ctx context.Context, t Target) (Conn, error)
	// Classify tells the kind of an error that came from this driver. It is asked about errors that are neither a
	// context's nor an [Error] already, and answers [Unknown] when it cannot tell.
	Classify func(error) Kind
}

// Target is where and how to connect.
type Target struct {
	// URL is what the user gave, without its query: the query's parameters are in Options. It may hold credentials.
	URL *url.URL
	// Hosts are all the servers that the URL names, as host:port or host; the first is URL.Host.
	Hosts []string
	// Options holds a value for every option of scope [OnConnect].
	Options Values
	// ClientName is what the broker's own tools should show for this connection.
	ClientName string
}

// Conn is one connection, or one client that owns several. Its methods may be called concurrently.
type Conn interface {
	// NewProducer returns a producer for one topic.
	NewProducer(ctx context.Context, c ProducerConfig) (Producer, error)
	// NewConsumer returns when the consumer would see the next message sent to its topic: subscribed, assigned,
	// joined. (A member of a group that has no partition left for it is ready too.)
	NewConsumer(ctx context.Context, c ConsumerConfig) (Consumer, error)
	// Close closes what the connection owns. Producers and consumers are closed before it.
	Close(ctx context.Context) error
}

// ProducerConfig describes a producer.
type ProducerConfig struct {
	Topic string
	// Window is how many messages may at most be handed over and not yet done: a hint for the client library's own
	// buffers. The engine keeps to it; Send is never called with more outstanding. At least 1.
	Window int
	// Workers is how many calls of Send there may be at a time where Features.Async does not hold, each in a goroutine of its own: a hint
	// for the client library's pool of connections. At least 1; 0 where Features.Async holds.
	Workers int
	// Options holds a value for every option of scope [OnProducer].
	Options Values
}

// Producer sends to one topic.
type Producer interface {
	// Send hands b to the client library and returns as soon as it may be called again, which is at once where
	// Features.Async holds, and after the broker's answer where it does not.
	//
	// done is called exactly once for every i in b, from any goroutine, possibly before Send returns: with nil when the
	// broker has the message, in the sense of Features.Confirm, else with the client's error. b and all that it refers
	// to are the driver's, unchanged, until the last done; afterwards it keeps nothing of them.
	//
	// Send may be called concurrently. What one goroutine sends is handed over in its order. When ctx ends, whatever
	// Send is waiting for fails with ctx's error; it does not recall messages already handed over.
	Send(ctx context.Context, b Batch, done Done)
	// Close waits for every outstanding done, or fails those that remain when ctx ends. A Send that comes after Close
	// calls done with [ErrClosed].
	Close(ctx context.Context) error
}

// Done reports the fate of message i of a batch.
type Done func(i int, err error)

// Start is where a consumer begins that has no committed position.
type Start uint8

const (
	// StartNew begins with the first message sent after the consumer is ready.
	StartNew Start = 1 << iota
	// StartEarliest begins with the oldest message that the broker still has.
	StartEarliest
)

// ConsumerConfig describes a consumer.
type ConsumerConfig struct {
	Topic string
	// Group shares the topic's messages among its members. Empty where the user named none: then a driver with Fanout
	// gives the consumer every message, and one without gives it the topic's only, shared, flow.
	Group string
	// Prefetch is how many messages may be with this consumer and not settled. At least 1.
	Prefetch int
	// Start is one of those in Features.Start.
	Start Start
	// ConfirmSettle asks that Settle waits for the broker's confirmation. Only set where Features.SettleConfirmed is
	// [OnRequest] or [Always].
	ConfirmSettle bool
	// Options holds a value for every option of scope [OnConsumer].
	Options Values
}

// Consumer receives from one topic. Receive is called by one goroutine at a time; Settle and Close may be called by others.
type Consumer interface {
	// Receive fills b from its start and returns how many. It waits for the first message and never for the second.
	// Each message carries Received, taken by the first line of the driver that sees it, and what it refers to stays
	// valid after Receive is called again. When ctx ends before a message comes, Receive returns 0 and ctx's error.
	// After any other error it may be called again; the client reconnects by itself where it can.
	Receive(ctx context.Context, b Batch) (int, error)
	// Settle ends the delivery of messages that this consumer received. It returns when the broker has confirmed, where
	// that was asked for, and otherwise when the client library took it. An outcome that Features.Settle lacks gives
	// [errors.ErrUnsupported].
	Settle(ctx context.Context, b Batch, o Outcome) error
	// Close leaves; what is not settled goes back to the broker, where the broker knows of settling. A Receive that is
	// waiting returns [ErrClosed], and so does a Settle that comes later. Closing again does nothing.
	Close(ctx context.Context) error
}

// Stopper is an optional interface of a [Consumer] whose broker sends messages without being asked for them and keeps none: what is on
// its way to a consumer when it closes would be gone.
type Stopper interface {
	// Stop asks for no more messages and returns when all that the broker has sent has come, or with ctx's error. Receive gives what has
	// come until Close is called.
	Stop(ctx context.Context) error
}

// Outcome is how a delivery ends.
type Outcome uint8

const (
	// Ack says that the message is done with.
	Ack Outcome = 1 << iota
	// Requeue gives the message back, to be delivered again.
	Requeue
	// Reject says that the message shall not be delivered again: dropped or dead-lettered.
	Reject
)

// TopicSpec describes a topic (queue, stream, subject) to be created.
type TopicSpec struct {
	Name string
	// Partitions is how many ordered parts the topic shall have. Brokers without partitions ignore it. At least 1.
	Partitions int
	// Replicas is how many copies of each message there shall be. Brokers where that is no property of a topic ignore it.
	// At least 1.
	Replicas int
	// Options holds a value for every option of scope [OnTopic].
	Options Values
}

// Admin is an optional interface of a [Conn] whose broker has topics to manage. A verb that the broker lacks gives
// [errors.ErrUnsupported].
type Admin interface {
	// CreateTopic creates a topic; that it exists already is no error.
	CreateTopic(ctx context.Context, s TopicSpec) error
	// DeleteTopic deletes a topic and all that belongs to it, its groups included; an absent one is an error of kind
	// [NotFound].
	DeleteTopic(ctx context.Context, topic string) error
	// PurgeTopic removes the messages and keeps the topic.
	PurgeTopic(ctx context.Context, topic string) error
}

// Prover is an optional interface where the options of a producer, or what its topic is, decide what a confirmation proves: of a [Conn] that says the
// same of all producers with the same options, and of a [Producer] where each finds something of its own when it opens, that decides. A producer keeps
// to what it proved when it opened: one that cannot any more, as after a reconnect, fails its messages.
type Prover interface {
	// Proof is what a nil error in [Done] proves for such a producer, never more than is known. Where the broker does not tell how many copies
	// its protocol makes, How says that. created is what this test made the topic as; nil where it did not.
	Proof(ctx context.Context, c ProducerConfig, created *TopicSpec) Proof
}

// Proof is what a nil error in [Done] proves.
type Proof struct {
	Confirm Confirm
	// Routed says that the producer sends each message where its key says: which of the topic's groups get it nobody knows but the broker.
	Routed bool
	// How says in a few words who has the message then and by which setting, such as "acks=all, 3 replicas, at least 2 in sync".
	How string
}

// TopicDescriber is an optional interface of an [Admin] whose broker can say what a topic is: one that existed already need not be as
// [TopicSpec] asks.
type TopicDescriber interface {
	// DescribeTopic is what the broker has; an absent topic is an error of kind [NotFound].
	DescribeTopic(ctx context.Context, topic string) (TopicInfo, error)
}

// TopicInfo is what a topic is.
type TopicInfo struct {
	Partitions int // ordered parts; 0 where the broker has no such thing
	Replicas   int // copies of each message, at least 1
	// Options are those of scope [OnTopic] whose values the broker tells. An option that says "what is left to the broker" has what that is.
	Options Values
}

// Backlogger is an optional interface of a [Conn] that can tell what is still to be done.
type Backlogger interface {
	// Backlog is what the broker has of the topic for the group.
	Backlog(ctx context.Context, topic, group string) (Backlog, error)
}

// Backlog is what a broker has for a group. Each is a number of messages.
type Backlog struct {
	Messages    int64 // that the group has not settled: those not delivered and those in flight
	Undelivered int64 // of these, those that the broker knows it has never delivered to the group; 0 where it cannot tell
}

// Holder is an optional interface of a [Consumer] whose broker may be done with a message before the consumer has settled it. Without it
// every message that was received and not settled is taken to be in the group's [Backlog], unless it was given back or came again.
type Holder interface {
	// Holds is false where the broker settles messages by itself, when it delivers them or with later ones, or gives them up after one
	// delivery.
	Holds() bool
}

// Requester is an optional interface of a [Producer] whose broker has a natural form of request and reply.
type Requester interface {
	// Request sends m and waits for one reply, until ctx ends.
	Request(ctx context.Context, m Message) (Message, error)
}

// Selector is an optional interface of a [Consumer] that may have asked its broker for some of the topic's messages only.
type Selector interface {
	// Selects is true where messages that do not come may not have been asked for. Then what the topic's groups lack is not called lost.
	Selects() bool
}

// Replier is an optional interface of a [Consumer] whose messages may ask for a reply.
type Replier interface {
	// Reply answers a message that this consumer received.
	Reply(ctx context.Context, to, reply Message) error
}

// Informer is an optional interface of a [Conn] that knows what it is connected to.
type Informer interface{ Info() Info }

// Info is what a report says about a connection.
type Info struct {
	Server   string `json:"server"`   // product and version, such as "nats-server 2.15.2"
	Client   string `json:"client"`   // library and version, such as "nats.go 1.53.1"
	Nodes    int    `json:"nodes"`    // how many servers the client knows of; 0 when unknown
	Embedded bool   `json:"embedded"` // the server runs inside this process
}

// Unwrapper is an optional interface of a [Conn], [Producer] or [Consumer] that lends the client library's own object.
type Unwrapper interface {
	// As sets *target to the client's object if it is of that type.
	As(target any) bool
}
