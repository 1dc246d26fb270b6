package driver

import (
	"context"
	"runtime/debug"
	"strings"
)

// TopicSpec describes a topic (queue, stream, subject) to be created.
type TopicSpec struct {
	Name string
	// Partitions is the number of ordered parts, at least 1. Brokers without partitions ignore it.
	Partitions int
	// Replicas is the number of copies, at least 1. Brokers that do not set it by topic ignore it.
	Replicas int
	// Options holds a value for every option of scope [OnTopic].
	Options Values
}

// Admin is an optional interface of a [Conn] whose broker has topics to manage. A verb that the
// broker lacks returns [errors.ErrUnsupported].
type Admin interface {
	// CreateTopic creates a topic. An existing one is not an error.
	CreateTopic(ctx context.Context, s TopicSpec) error
	// DeleteTopic deletes a topic with its groups. An absent one is an error of kind [NotFound].
	DeleteTopic(ctx context.Context, topic string) error
	// PurgeTopic removes the messages and keeps the topic.
	PurgeTopic(ctx context.Context, topic string) error
}

// Prover is an optional interface if a producer's options or its topic decide what a confirmation
// proves. A [Conn] implements it if the proof is the same for all producers with the same options,
// a [Producer] if the proof is known when the producer opens. A producer that can no longer give
// its proof, such as after a reconnect, fails its messages.
type Prover interface {
	// Proof returns what a nil error in [Done] proves for such a producer. If the number of copies
	// is not available from the broker, How contains that. created is the specification of the
	// topic if this test created it, else nil.
	Proof(ctx context.Context, c ProducerConfig, created *TopicSpec) Proof
}

// Proof is what a nil error in [Done] proves.
type Proof struct {
	Confirm Confirm
	// Routed: the key of each message decides which of the topic's groups receive it.
	Routed bool
	// How names who has the message and by which setting, such as "acks=all, 3 replicas, at least 2
	// in sync".
	How string
}

// TopicDescriber is an optional interface of an [Admin] whose broker can describe a topic. An
// existing topic may differ from [TopicSpec].
type TopicDescriber interface {
	// DescribeTopic returns the broker's description. An absent topic is an error of kind [NotFound].
	DescribeTopic(ctx context.Context, topic string) (TopicInfo, error)
}

// TopicInfo describes a topic.
type TopicInfo struct {
	Partitions int // ordered parts; 0 if the broker has none
	Replicas   int // copies of each message, at least 1
	// Options has the values of options of scope [OnTopic] that the broker returns, including
	// defaults of the broker.
	Options Values
}

// Auditor is an optional interface of a [Producer] of a driver that only sends, whose broker may
// confirm messages that it has not stored. It reads back the stored ones.
type Auditor interface {
	// Audit compares the confirmed messages with the stored ones. It is called once, after the
	// producer is closed and before its connection is closed. If the broker cannot be read, Audit
	// returns an error, and Audit.Confirmed is valid.
	Audit(ctx context.Context) (Audit, error)
}

// Audit is the outcome of a producer's messages.
type Audit struct {
	Confirmed uint64 // those whose [Done] had no error
	Missing   uint64 // of these, those that the broker does not have
}

// Backlogger is an optional interface of a [Conn] whose broker reports the backlog of a group.
type Backlogger interface {
	// Backlog returns the messages of the topic that the group has not settled. Settlements that
	// the client still buffers are sent first. If the broker does not count messages that are with
	// consumers, those held by this process are added, on all its connections.
	Backlog(ctx context.Context, topic, group string) (Backlog, error)
}

// Backlog is the number of messages that a broker has for a group.
type Backlog struct {
	Messages    int64 // not settled by the group: not delivered, or in flight
	Undelivered int64 // of these, never delivered to the group; 0 if not known
	// Dropped counts messages that consumers of this process received, the group has not settled,
	// and the broker has dropped since. They are not in Messages.
	Dropped  int64
	Estimate bool // so missing messages are uncertain
}

// SettleReporter is an optional interface of a [Consumer] whose Settle may return nil before the
// broker has answered.
type SettleReporter interface {
	// OnSettled sets the function that is called, until Close returns, when the broker has answered
	// for n messages: with nil if it settled them, else with the error; n is 0 if the client tries
	// again. Errors of Settle are not reported. OnSettled is called once, before the first Settle.
	OnSettled(report func(o Outcome, n int, err error))
}

// Requester is an optional interface of a [Producer] whose broker has a natural form of request and
// reply.
type Requester interface {
	// Request sends m and waits for one reply, until ctx ends.
	Request(ctx context.Context, m Message) (Message, error)
}

// Replier is an optional interface of a [Consumer] whose messages may ask for a reply.
type Replier interface {
	// Reply answers a message that this consumer received.
	Reply(ctx context.Context, to, reply Message) error
}

// Informer is an optional interface of a [Conn] that describes its server and client.
type Informer interface{ Info() Info }

// Info describes a connection.
type Info struct {
	Server   string `json:"server"`   // product and version, such as "nats-server 2.15.2"
	Client   string `json:"client"`   // library and version, such as "nats.go 1.53.1"
	Nodes    int    `json:"nodes"`    // number of servers; 0 if not known
	Embedded bool   `json:"embedded"` // the server runs inside this process
}

// ModuleVersion returns the version of a module of this program with a leading space, such as
// " 5.7.1"; "" if it is not known.
func ModuleVersion(module string) string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range build.Deps {
		if m.Path == module {
			return " " + strings.TrimPrefix(m.Version, "v")
		}
	}
	return ""
}

// Unwrapper is an optional interface of a [Conn] that lends the client library's own object.
type Unwrapper interface {
	// As sets *target to the client's object if it is of that type.
	As(target any) bool
}

// As is [Unwrapper] for an object of type T.
func As[T any](target any, object T) bool {
	to, ok := target.(*T)
	if ok {
		*to = object
	}
	return ok
}
