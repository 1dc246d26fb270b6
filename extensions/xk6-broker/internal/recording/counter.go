package recording

// Counter counts messages, bytes or events.
type Counter uint8

// Counters.
const (
	Due Counter = iota
	Sent
	Confirmed
	Received
	Acked
	Requeued
	Rejected
	BytesSent
	BytesReceived
	Corrupted
	Unstamped
	Foreign
	Sibling
	Earlier // of the siblings' and, where this process is alone, of an earlier test of the same name
	Routed
	Aliased
	Negative
	Blocked
	Unaccounted
	Unanswered
	StrayReplies
	NumCounters = iota
)

// Shown says where a counter shows.
type Shown uint8

// Where it is shown.
const (
	OnPage Shown = 1 << iota // of the report, though it be 0; where it is not 0, every counter shows there
	InText                   // on the terminal, where it is not 0
)

// counters describes each: its name, what it counts, and where it is shown.
var counters = [NumCounters]struct {
	name, doc string
	shown     Shown
}{
	Due:           {"due", "arrivals whose time had come", OnPage},
	Sent:          {"sent", "handed to the client library", OnPage},
	Confirmed:     {"confirmed", "confirmed by the broker, in the driver's sense", OnPage},
	Received:      {"received", "handed over to the application, copies included", OnPage},
	Acked:         {"acked", "acknowledged", InText},
	Requeued:      {"requeued", "given back, to be delivered again", InText},
	Rejected:      {"rejected", "refused for good", InText},
	BytesSent:     {"bytes_sent", "bytes of bodies sent", OnPage},
	BytesReceived: {"bytes_received", "bytes of bodies received", OnPage},
	Corrupted:     {"corrupted", "damaged on the way: stamp or body", OnPage},
	Unstamped:     {"unstamped", "received without a stamp: nothing is known of them", InText},
	Unaccounted:   {"unaccounted", "sent without a stamp: nothing is known of what becomes of them", 0},
	Foreign:       {"foreign", "received with the stamp of another test", InText},
	Sibling:       {"sibling", "received from another process of this test", InText},
	Earlier:       {"earlier", "received, and sent by this test's name before this process began: in no latency", InText},
	Routed:        {"routed", "received by way of another topic of this test: dead letters, wildcards, what was forwarded", InText},
	Aliased:       {"aliased", "received from this topic at another address of the broker: not accounted for", InText},
	Negative:      {"negative", "received before they were sent, by the clocks of two machines", 0},
	Blocked:       {"blocked", "sends that waited because the window was full, or all workers were busy", InText},

	Unanswered:   {"unanswered", "requests that were sent and had no reply in time", InText},
	StrayReplies: {"stray_replies", "replies to no waiting request: late, again, or of another test", InText},
}

// String is the counter's name.
func (c Counter) String() string { return counters[c].name }

// Doc is what it counts.
func (c Counter) Doc() string { return counters[c].doc }

// Shown reports whether the counter is shown in one of these places.
func (c Counter) Shown(where Shown) bool { return counters[c].shown&where != 0 }

// Consumers reports whether it counts what consumers always do, which is not there where a driver only sends.
func (c Counter) Consumers() bool { return c == Received || c == BytesReceived || c == Corrupted }

// Bytes reports whether it counts bytes.
func (c Counter) Bytes() bool { return c == BytesSent || c == BytesReceived }

// Requesters reports whether it counts what happens to requests, where they are sent.
func (c Counter) Requesters() bool {
	return c == Unanswered || c == StrayReplies
}

var outcomes = map[Counter]string{Acked: "ack", Requeued: "requeue", Rejected: "reject"}

// Outcome is the value of the tag outcome of a counter of settled messages; "" of another counter.
func (c Counter) Outcome() string { return outcomes[c] }
