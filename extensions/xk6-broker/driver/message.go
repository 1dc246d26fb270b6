package driver

import "time"

// Batch is some messages that go together. Drivers do not keep it after the call or the last [Done].
type Batch []Message

// Message is one message, sent or received.
type Message struct {
	// Key chooses the partition if the broker has partitions; nil if there is none.
	Key []byte
	// Body is the payload. Nil is the same as empty without Features.Tombstones.
	Body []byte
	// Headers are in the order of the wire. They need Features.Headers.
	Headers []Header
	// Properties has the message's options of scope [OnMessage]; nil if it has none. They override
	// the producer's options.
	Properties Values
	// Place, if not nil, is filled from the broker's answer before [Done] is called with nil. It
	// needs Features.Receipts.
	Place *Place

	// The following fields are set by Receive.

	// Topic is the message's topic, which may be narrower than the consumer's.
	Topic string
	// Received is the time at which the driver first saw the message, by [Now].
	Received int64
	// Attempt counts the deliveries of this message with Features.Attempts; else 0. A broker that
	// reports redelivery only gives 1 and 2.
	Attempt int32
	// Partition is the part of the topic within which order holds; 0 if the topic has no parts.
	Partition int32
	// Token is the driver's own handle for Settle and Reply.
	Token any
}

// Header is one name and value of a message. The value may have any byte if the broker allows it.
type Header struct {
	Name  string
	Value []byte
}

// epoch relates the monotonic clock to the calendar, once.
var (
	epoch     = time.Now()
	epochUnix = epoch.UnixNano()
)

// Now returns nanoseconds since the Unix epoch, on the process's monotonic clock. Differences within
// a process are exact; across processes they depend on the wall clocks at the start of each.
func Now() int64 { return epochUnix + int64(time.Since(epoch)) }
