package driver

import (
	"context"
	"net/url"
)

// A Driver describes one delivery semantics of one broker: redis-streams and redis-pubsub are two
// drivers.
type Driver struct {
	// Name is the value of the metric tag "driver", such as "kafka" or "nats-jetstream".
	Name string
	// Schemes are the URL schemes of this driver; the first is the canonical one.
	Schemes []string
	// OneHost: a URL has at most one host.
	OneHost bool
	// OwnDialer: the client library opens connections itself, so [Network.Dial] is refused.
	OwnDialer bool
	// Doc describes the driver in one sentence.
	Doc string
	// Features are the driver's claims, which the conformance kit proves.
	Features Features
	// Options are all the options that a URL or a script may set. See [Option].
	Options []Option
	// Place returns where the broker stored a received message; nil if the features claim no place.
	Place func(m *Message) Place
	// Correlation names the headers of requests over two topics, for a driver with headers and
	// without Requests; the default is [Correlated].
	Correlation Correlation
	// Open connects. It fails if the server does not answer before ctx ends.
	Open func(ctx context.Context, t Target) (Conn, error)
	// Classify returns the kind of an error that is neither a context's nor an [Error], or [Unknown].
	Classify func(error) Kind
}

// Target describes a connection to open.
type Target struct {
	// URL is the user's URL without its query. It may have credentials.
	URL *url.URL
	// Hosts are all servers of the URL, as host:port or host; the first is URL.Host.
	Hosts []string
	// Options has a value for every option of scope [OnConnect].
	Options Values
	// ClientName is the name of this connection for the broker's own tools.
	ClientName string
	// Network opens connections: see [Target.Plain], [Target.Dialer] and [Target.TLS].
	Network Network
}

// Conn is one connection, or one client that owns several. Its methods may be called concurrently.
type Conn interface {
	// NewProducer returns a producer for one topic.
	NewProducer(ctx context.Context, c ProducerConfig) (Producer, error)
	// NewConsumer returns when the consumer would receive the next message sent to its topic. A
	// member of a group that has no partition left for it is ready too.
	NewConsumer(ctx context.Context, c ConsumerConfig) (Consumer, error)
	// Close closes the connection. Producers and consumers are closed before it.
	Close(ctx context.Context) error
}

// ProducerConfig describes a producer.
type ProducerConfig struct {
	Topic string
	// Window is the largest number of messages handed over and not done, at least 1. The engine
	// keeps to it; it is a hint for the client's buffers.
	Window int
	// Workers is the largest number of concurrent calls of Send without Features.Async, at least 1;
	// 0 with it. It is a hint for the client's pool of connections.
	Workers int
	// Options has a value for every option of scope [OnProducer].
	Options Values
}

// Producer sends to one topic.
type Producer interface {
	// Send hands b to the client library. It returns at once with Features.Async, else after the
	// broker's answer. It may be called concurrently, and keeps the order of each goroutine.
	//
	// done is called exactly once for every i in b, from any goroutine, possibly before Send
	// returns: with nil when the broker has the message, in the sense of Features.Confirm, else
	// with the client's error. The driver may use b, unchanged, until the last done.
	//
	// When ctx ends, a Send that waits fails with ctx's error. Messages handed over stay sent.
	Send(ctx context.Context, b Batch, done Done)
	// Close waits for every outstanding done, and fails the remaining ones when ctx ends. A later
	// Send calls done with [ErrClosed].
	Close(ctx context.Context) error
}

// Done reports the fate of message i of a batch.
type Done func(i int, err error)

// Start is the position of a consumer without a committed position.
type Start uint8

const (
	// StartNew is the first message sent after the consumer is ready.
	StartNew Start = 1 << iota
	// StartEarliest is the oldest message that the broker has.
	StartEarliest
)

// ConsumerConfig describes a consumer.
type ConsumerConfig struct {
	Topic string
	// Group shares the topic's messages among its members. Without a group a driver with Fanout
	// gives the consumer every message; one without shares them among all consumers.
	Group string
	// Prefetch is the largest number of messages that this consumer has and has not settled, at
	// least 1. A message whose lease has expired does not count.
	Prefetch int
	// Start is one of Features.Start.
	Start Start
	// ConfirmSettle makes Settle wait for the broker's confirmation. It is set only if
	// Features.SettleConfirmed is [OnRequest] or [Always].
	ConfirmSettle bool
	// Options has a value for every option of scope [OnConsumer].
	Options Values
}

// Consumer receives from one topic. Receive is called by one goroutine at a time; Settle and Close
// may be called by others.
type Consumer interface {
	// Receive fills b from its start and returns the number of messages. It waits for the first
	// only. Each message has its Received time, taken by the first line of the driver, and its data
	// stays valid. When ctx ends before a message arrives, Receive returns 0 and ctx's error. After
	// another error it may be called again, and the client reconnects by itself if it can.
	Receive(ctx context.Context, b Batch) (int, error)
	// Settle ends the delivery of messages that this consumer received. It returns after the
	// broker's confirmation if that was asked for. An outcome that is not in Features.Settle gives
	// [errors.ErrUnsupported].
	Settle(ctx context.Context, b Batch, o Outcome) error
	// Close leaves and gives back unsettled messages, if the broker can settle. A waiting Receive
	// and a later Settle return [ErrClosed]. Closing again does nothing.
	Close(ctx context.Context) error
}

// Outcome is how a delivery ends.
type Outcome uint8

const (
	// Ack ends the delivery of a processed message.
	Ack Outcome = 1 << iota
	// Requeue gives the message back for another delivery.
	Requeue
	// Reject drops or dead-letters the message: it is not delivered again.
	Reject
)

// Correlation names the headers that relate a reply to its request, for brokers without requests of
// their own. The names are those that programs on such brokers use.
type Correlation struct {
	ID      string // repeated by the reply
	ReplyTo string // the topic of the reply
}

// Correlated has the names of AMQP's properties, for brokers without names of their own.
var Correlated = Correlation{ID: "correlation-id", ReplyTo: "reply-to"}
