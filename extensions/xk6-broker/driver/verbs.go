package driver

import "context"

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

// Auditor is an optional interface of a [Producer] of a driver that only sends, whose broker confirms messages that it need not have stored: it reads back
// which are there.
type Auditor interface {
	// Audit compares what was confirmed with what the broker has. It is asked once, after the producer is closed and before its connection is. Where the
	// broker cannot tell, that is an error, and Audit.Confirmed holds all the same.
	Audit(ctx context.Context) (Audit, error)
}

// Audit is what became of the messages of a producer.
type Audit struct {
	Confirmed uint64 // those whose [Done] had no error
	Missing   uint64 // of these, those that the broker does not have
}

// Backlogger is an optional interface of a [Conn] that can tell what is still to be done.
type Backlogger interface {
	// Backlog is what the broker has of the topic for the group. What this connection's consumers have settled and the client still keeps is told the
	// broker first. Where the broker does not tell what is with consumers, what those of this process hold is counted in, whichever connection they are on.
	Backlog(ctx context.Context, topic, group string) (Backlog, error)
}

// Backlog is what a broker has for a group. Each is a number of messages.
type Backlog struct {
	Messages    int64 // that the group has not settled: those not delivered and those in flight
	Undelivered int64 // of these, those that the broker knows it has never delivered to the group; 0 where it cannot tell
	// Dropped is how many messages the consumers of this process have received that the group has not settled and the broker has dropped since. They are
	// not in Messages.
	Dropped  int64
	Estimate bool // this answer is an estimate, as those of Features.BacklogEstimated always are
}

// SettleReporter is an optional interface of a [Consumer] whose Settle may return nil before the broker has answered.
type SettleReporter interface {
	// OnSettled has report called, until Close returns, whenever the broker has answered for n messages: with nil if it has settled them, else with
	// the error; n is 0 if the client will try again. An error that Settle returns is not reported. OnSettled is called once, before the first Settle.
	OnSettled(report func(o Outcome, n int, err error))
}

// Requester is an optional interface of a [Producer] whose broker has a natural form of request and reply.
type Requester interface {
	// Request sends m and waits for one reply, until ctx ends.
	Request(ctx context.Context, m Message) (Message, error)
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

// As is [Unwrapper] for an object of type T.
func As[T any](target any, object T) bool {
	to, ok := target.(*T)
	if ok {
		*to = object
	}
	return ok
}
