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
	// Schemes are the URL schemes that this driver answers to; the first is the canonical one.
	Schemes []string
	// OneHost: a URL has at most one host.
	OneHost bool
	// OwnDialer: the client library opens connections itself, so [Network.Dial] is refused.
	OwnDialer bool
	// Doc describes the driver in one sentence.
	Doc string
	// Protocol is the protocol of its servers. A server of another one is named in the error, see
	// [ProtocolError].
	Protocol Protocol
	// Features is what the driver claims; the conformance kit proves it.
	Features Features
	// Options are all the options that a URL or a script may set. See [Option].
	Options []Option
	// Place returns where the broker stores a message that a consumer of this driver received. It
	// is called only if the place is needed; nil if the features claim no place.
	Place func(m *Message) Place
	// Correlation names the headers of request and reply by two topics, where the features claim
	// headers and no Requests; [Correlated] where it is zero.
	Correlation Correlation
	// Open connects. It fails rather than waits when the server does not answer before ctx ends.
	Open func(ctx context.Context, t Target) (Conn, error)
	// Classify returns the kind of an error of this driver, or [Unknown]. It is called for errors
	// that are neither a context's nor an [Error].
	Classify func(error) Kind
}

// Target is where and how to connect.
type Target struct {
	// URL is what the user gave, without its query: the query's parameters are in Options. It may
	// hold credentials.
	URL *url.URL
	// Hosts are all the servers that the URL names, as host:port or host; the first is URL.Host.
	Hosts []string
	// Options holds a value for every option of scope [OnConnect].
	Options Values
	// ClientName is what the broker's own tools should show for this connection.
	ClientName string
	// Network is what connections go through: see [Target.Plain], [Target.Dialer] and [Target.TLS].
	Network Network

	files map[string]file // by the value of the option
}

// Conn is one connection, or one client that owns several. Its methods may be called concurrently.
type Conn interface {
	// NewProducer returns a producer for one topic.
	NewProducer(ctx context.Context, c ProducerConfig) (Producer, error)
	// NewConsumer returns when the consumer would see the next message sent to its topic:
	// subscribed, assigned, joined. (A member of a group that has no partition left for it is ready
	// too.)
	NewConsumer(ctx context.Context, c ConsumerConfig) (Consumer, error)
	// Close closes what the connection owns. Producers and consumers are closed before it.
	Close(ctx context.Context) error
}

// ProducerConfig describes a producer.
type ProducerConfig struct {
	Topic string
	// Window is how many messages may at most be handed over and not yet done: a hint for the
	// client library's own buffers. The engine keeps to it; Send is never called with more
	// outstanding. At least 1.
	Window int
	// Workers is how many calls of Send there may be at a time where Features.Async does not hold,
	// each in a goroutine of its own: a hint for the client library's pool of connections. At least
	// 1; 0 where Features.Async holds.
	Workers int
	// Options holds a value for every option of scope [OnProducer].
	Options Values
}

// Producer sends to one topic.
type Producer interface {
	// Send hands b to the client library and returns as soon as it may be called again, which is at
	// once where Features.Async holds, and after the broker's answer where it does not.
	//
	// done is called exactly once for every i in b, from any goroutine, possibly before Send
	// returns: with nil when the broker has the message, in the sense of Features.Confirm, else
	// with the client's error. b and all that it refers to are the driver's, unchanged, until the
	// last done; afterwards it keeps nothing of them.
	//
	// Send may be called concurrently. What one goroutine sends is handed over in its order. When
	// ctx ends, whatever Send is waiting for fails with ctx's error; it does not recall messages
	// already handed over.
	Send(ctx context.Context, b Batch, done Done)
	// Close waits for every outstanding done, and fails the remaining ones when ctx ends. A Send
	// that comes after Close calls done with [ErrClosed].
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
	// Group shares the topic's messages among its members. Empty where the user named none: then a
	// driver with Fanout gives the consumer every message, and one without gives it the topic's
	// only, shared, flow.
	Group string
	// Prefetch is how many messages may be with this consumer and not settled. At least 1. A
	// message whose loan has expired does not count.
	Prefetch int
	// Start is one of Features.Start.
	Start Start
	// ConfirmSettle asks that Settle waits for the broker's confirmation. Only set where
	// Features.SettleConfirmed is [OnRequest] or [Always].
	ConfirmSettle bool
	// Options holds a value for every option of scope [OnConsumer].
	Options Values
}

// Consumer receives from one topic. Receive is called by one goroutine at a time; Settle and Close
// may be called by others.
type Consumer interface {
	// Receive fills b from its start and returns how many. It waits for the first message and never
	// for the second. Each message carries Received, taken by the first line of the driver that
	// sees it, and its data stays valid after Receive is called again. When ctx ends before a
	// message comes, Receive returns 0 and ctx's error. After any other error it may be called
	// again; the client reconnects by itself where it can.
	Receive(ctx context.Context, b Batch) (int, error)
	// Settle ends the delivery of messages that this consumer received. It returns when the broker
	// has confirmed, where that was asked for, and otherwise when the client library took it. An
	// outcome that Features.Settle lacks gives [errors.ErrUnsupported].
	Settle(ctx context.Context, b Batch, o Outcome) error
	// Close leaves. Unsettled messages go back to the broker, if it supports settling. A Receive
	// that is waiting returns [ErrClosed], and so does a Settle that comes later. Closing again
	// does nothing.
	Close(ctx context.Context) error
}

// Outcome is how a delivery ends.
type Outcome uint8

const (
	// Ack ends the delivery of a processed message.
	Ack Outcome = 1 << iota
	// Requeue gives the message back, to be delivered again.
	Requeue
	// Reject drops or dead-letters the message: it is not delivered again.
	Reject
)
