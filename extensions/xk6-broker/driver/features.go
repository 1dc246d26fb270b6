package driver

// Features are a driver's claims. The conformance kit proves each claim, and that everything else is
// refused.
type Features struct {
	Order           Order           // the scope of the order of one producer's messages
	Confirm         Confirm         // the most that a nil error in [Done] proves; see [Prover]
	Deliver         Deliver         // the delivery guarantee
	Settle          Outcome         // the outcomes of Settle, a bit set; 0 if nothing is settled
	Start           Start           // the starts of consumers, a bit set; 0 for a driver that only sends
	SettleConfirmed SettleConfirmed // whether the broker answers settlements
	Position        Form            // the form of positions that Driver.Place returns

	Async    bool // Send returns before the broker answers; else the engine calls it in workers
	Replay   bool // a new group may read what other groups have settled
	Groups   bool // consumers may name a group that shares the messages
	Fanout   bool // a consumer without a group gets every message
	Key      bool // the key of a message is kept
	Headers  bool // the headers of a message are kept
	Attempts bool // Message.Attempt is set
	// Tombstones: a message may have no body, Message.Body is nil then. An empty body is not nil.
	Tombstones bool
	Requests   bool // producers are [Requester]s, consumers [Replier]s; else the engine uses two topics
	Partitions bool // topics have partitions: Message.Partition and Place.Partition are set
	Timestamps bool // Driver.Place returns the time of a received message
	Receipts   bool // Message.Place is filled by a producer, if its settings allow it
	// BacklogWhole: one connection's [Backlog] includes the messages held by all connections of
	// this process.
	BacklogWhole bool
	// HeldUnseen: messages held by clients of other processes are in no [Backlog].
	HeldUnseen bool

	MaxMessageBytes int // the largest body with the server's default settings; 0 without a fixed limit
}

// Order is the scope within which messages of one producer arrive in the order sent, while nothing
// fails.
type Order uint8

// Orders, from none to all.
const (
	Unordered    Order = iota // none
	PerPartition              // within a partition; messages of one key share one
	PerTopic                  // within a topic
)

func (o Order) String() string { return [...]string{"none", "partition", "topic"}[o] }

// Confirm is the state of a message whose [Done] had no error.
type Confirm uint8

// Confirms, from the weakest.
const (
	Unconfirmed Confirm = iota // handed to the client's socket or write buffer
	Accepted                   // stored on one node
	Replicated                 // stored on as many nodes as the topic asks for
)

func (c Confirm) String() string { return [...]string{"unconfirmed", "accepted", "replicated"}[c] }

// Deliver is the delivery guarantee.
type Deliver uint8

// Delivers.
const (
	AtMostOnce  Deliver = iota // a message is delivered once or lost
	AtLeastOnce                // a message is delivered until it is settled
)

func (d Deliver) String() string { return [...]string{"at-most-once", "at-least-once"}[d] }

// SettleConfirmed describes when the broker answers a settlement.
type SettleConfirmed uint8

// When a settlement is confirmed.
const (
	Never     SettleConfirmed = iota // sent and not answered
	OnRequest                        // answered with [ConsumerConfig.ConfirmSettle]
	Always                           // always answered
)

func (s SettleConfirmed) String() string { return [...]string{"never", "on-request", "always"}[s] }

// Has reports whether the set o has all outcomes of q.
func (o Outcome) Has(q Outcome) bool { return o&q == q }

// String names a single outcome as the metric tag "outcome" does.
func (o Outcome) String() string {
	switch o {
	case Ack:
		return "ack"
	case Requeue:
		return "requeue"
	case Reject:
		return "reject"
	default:
		return "none"
	}
}

// Has reports whether the set s has all starts of q.
func (s Start) Has(q Start) bool { return s&q == q }

// String names a single start as the consumer's option "start" does.
func (s Start) String() string {
	if s == StartEarliest {
		return "earliest"
	}
	return "new"
}
