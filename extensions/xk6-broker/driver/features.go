package driver

// Features is what a driver claims about its deliveries. The conformance kit proves each claim, and proves that what is
// not claimed is refused.
type Features struct {
	Order           Order           // within what the broker keeps the order of one producer's messages
	Confirm         Confirm         // what a nil error in [Done] proves at most: see [Prover]
	Deliver         Deliver         // what happens to a message whose consumer fails
	Settle          Outcome         // the outcomes that Settle takes, a bit set; 0 where nothing is settled
	Start           Start           // where a consumer may begin, a bit set; 0 of a driver that only sends, and has no consumers
	SettleConfirmed SettleConfirmed // whether Settle knows that the broker knows
	Position        Form            // what Driver.Place tells of where a received message is

	Async    bool // Send returns before the broker has answered; where it does not, the engine calls it in workers
	Replay   bool // a new group may read what other groups have settled
	Groups   bool // consumers may name a group that shares the messages
	Fanout   bool // a consumer without a group gets every message
	Key      bool // the key of a message is kept
	Headers  bool // the headers of a message are kept
	Attempts bool // Message.Attempt is set
	// Tombstones says that a message may have no body at all, which is not the same as an empty one: Message.Body is nil.
	Tombstones bool
	Requests   bool // producers are [Requester]s and consumers [Replier]s; where they are not the engine does it with two topics
	Partitions bool // topics have partitions: Message.Partition and Place.Partition are set
	Timestamps bool // Driver.Place tells when a received message is from
	Receipts   bool // Message.Place is filled by a producer whose broker tells, with its settings
	// BacklogEstimated says that what a [Backlogger] tells is an estimate: what is missing is never called lost by it, nor undelivered, but uncertain.
	BacklogEstimated bool
	// BacklogWhole says that what a [Backlogger] tells is whole, whichever connection it is that is asked: the others of this process are not asked too.
	BacklogWhole bool
	// HeldUnseen says that what clients outside of this process hold unsettled is in no [Backlog], and that nothing tells of all of them.
	HeldUnseen bool

	MaxMessageBytes int // the largest body with the server's default settings; 0 where there is no fixed limit
}

// ofSending is what is left of the features without consumers.
func (f Features) ofSending() Features {
	return Features{
		Confirm: f.Confirm, Async: f.Async, Key: f.Key, Headers: f.Headers, Tombstones: f.Tombstones, Partitions: f.Partitions,
		Receipts: f.Receipts, MaxMessageBytes: f.MaxMessageBytes,
	}
}

// Order is the scope within which messages of one producer are delivered in the order they were sent, while nothing fails.
type Order uint8

// Orders, from none to all.
const (
	Unordered    Order = iota // none
	PerPartition              // within a partition; messages of one key share one
	PerTopic                  // within a topic
)

func (o Order) String() string { return [...]string{"none", "partition", "topic"}[o] }

// Confirm is what the broker has done with a message whose [Done] had no error.
type Confirm uint8

// Confirms, from the weakest.
const (
	Unconfirmed Confirm = iota // handed to the client's socket or write buffer; nothing is known of the broker
	Accepted                   // the broker has it, on one node
	Replicated                 // the broker has it, on as many nodes as the topic asks for
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

// SettleConfirmed says whether a settlement is answered by the broker.
type SettleConfirmed uint8

// When a settlement is confirmed.
const (
	Never     SettleConfirmed = iota // sent and not answered
	OnRequest                        // answered where [ConsumerConfig.ConfirmSettle] asks for it
	Always                           // always answered
)

func (s SettleConfirmed) String() string { return [...]string{"never", "on-request", "always"}[s] }

// Has tells whether all outcomes of q are in the set o.
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

// Has tells whether all starts of q are in the set s.
func (s Start) Has(q Start) bool { return s&q == q }

// String names a single start as the consumer's option "start" does.
func (s Start) String() string {
	if s == StartEarliest {
		return "earliest"
	}
	return "new"
}
