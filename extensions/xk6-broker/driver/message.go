package driver

import "time"

// Batch is some messages that go together. Drivers never keep one past the call or the last [Done].
type Batch []Message

// Message is one message, on its way out or in.
type Message struct {
	// Key chooses the partition where the broker has partitions. Nil where there is none. A
	// producer that has no use for it ignores it.
	Key []byte
	// Body is the payload; any bytes. Nil is the same as empty but where Features.Tombstones.
	Body []byte
	// Headers are in the order of the wire. Only where Features.Headers.
	Headers []Header
	// Properties are those that the message has of the driver's options of scope [OnMessage]; nil
	// where it has none. Of those that are not in there a producer's own options hold, where they
	// have that scope, too.
	Properties Values
	// Place, where it is not nil, is filled before [Done] is called with nil, where
	// Features.Receipts: with what the broker's answer says.
	Place *Place

	// What follows is set by Receive.

	// Topic is where the message came from, which may be narrower than what the consumer asked for.
	Topic string
	// Received is when the driver first saw the message, by [Now].
	Received int64
	// Attempt counts the deliveries of this message, this one included, where Features.Attempts;
	// else 0. A broker that only knows "delivered before" gives 1 and 2.
	Attempt int32
	// Partition is the part of the topic within which order holds; 0 where the topic has no parts.
	Partition int32
	// Token is the driver's own handle for Settle and Reply.
	Token any
}

// Header is one name and value of a message. The value may hold any byte where the broker allows
// it.
type Header struct {
	Name  string
	Value []byte
}

// epoch ties the monotonic clock to the calendar once, when the process starts.
var (
	epoch     = time.Now()
	epochUnix = epoch.UnixNano()
)

// Now is the time in nanoseconds since the Unix epoch, on the process's monotonic clock:
// differences within a process are exact whatever is done to the wall clock, and across processes
// they are as good as the wall clocks were when each started.
func Now() int64 { return epochUnix + int64(time.Since(epoch)) }
