package recording

import ()

// Trend is a latency that is measured for each message. All are in nanoseconds within Go; see
// docs/methodology.md.
type Trend uint8

// Trends.
const (
	PublishLatency Trend = iota
	PublishTime
	E2ELatency
	E2ETime
	DeliveryWait
	ScheduleLag
	GeneratorLag // the generator's own part of the lag: when it would have been sent by a punctual generator → sent
	SettleTime
	RedeliveryTime
	FailedLatency
	RequestLatency
	RequestTime
	NumTrends = iota
)

// trends describes each: its metric's name without the prefix "broker_", what people call it, and
// from which instant to which it is.
var trends = [NumTrends]struct {
	name, title, span string
	looped            bool // measured apart of what a schedule sent and what a closed loop did
	consumers         bool // measured where messages are received
}{
	PublishLatency: {"publish_latency", "publish latency", "due → confirmed", true, false},
	PublishTime:    {"publish_time", "publish time", "sent → confirmed", true, false},
	E2ELatency:     {"e2e_latency", "end-to-end latency", "due → handed over", true, true},
	E2ETime:        {"e2e_time", "end-to-end time", "sent → received", true, true},
	DeliveryWait:   {"delivery_wait", "delivery wait", "received → handed over", true, true},
	ScheduleLag:    {"schedule_lag", "schedule lag", "due → sent", false, false},
	GeneratorLag:   {"generator_lag", "generator lag", "", false, false},
	SettleTime:     {"settle_time", "settle time", "ack → confirmed", false, true},
	RedeliveryTime: {"redelivery_time", "redelivery time", "requeued → received", false, true},
	FailedLatency:  {"failed_latency", "failed sends", "due → error", true, false},
	RequestLatency: {"request_latency", "request latency", "due → reply", true, false},
	RequestTime:    {"request_time", "request time", "sent → reply", true, false},
}

// String is the metric's name without the prefix "broker_".
func (t Trend) String() string { return trends[t].name }

// Title is what people call the latency.
func (t Trend) Title() string { return trends[t].title }

// Label is its title and, in brackets, from which instant to which it is.
func (t Trend) Label() string {
	if trends[t].span == "" {
		return trends[t].title
	}
	return trends[t].title + " (" + trends[t].span + ")"
}

// Consumers reports whether the trend is measured where messages are received.
func (t Trend) Consumers() bool { return trends[t].consumers }

// Looped reports whether the trend is measured of both loops, apart.
func (t Trend) Looped() bool { return trends[t].looped }

// Operation is the operation of producers that the trend measures: "send" or "request"; "" of
// another trend.
func (t Trend) Operation() string {
	switch t {
	case PublishLatency, PublishTime:
		return "send"
	case RequestLatency, RequestTime:
		return "request"
	}
	return ""
}

// TrendNamed is the trend of a name; false where there is none.
func TrendNamed(name string) (Trend, bool) {
	for t := range Trend(NumTrends) {
		if trends[t].name == name {
			return t, true
		}
	}
	return 0, false
}

// Loop says what a latency is counted from. The latencies of the two are never put together.
type Loop uint8

// Loops.
const (
	Open     Loop = iota // from when a schedule wanted the message sent
	Closed               // from when it was sent: there is no schedule, and waiting does not show
	NumLoops = iota
)

// String is the value of the tag "loop".
func (l Loop) String() string { return [...]string{"open", "closed"}[l] }

// ClosedSuffix is added to the name of a trend of a closed loop, where the topic has an open one
// too.
const ClosedSuffix = "_closed"

// In is the name of the trend, measured in a loop, where a topic has both.
func (t Trend) In(l Loop) string {
	if l == Closed {
		return t.String() + ClosedSuffix
	}
	return t.String()
}

// InClosed is the name that a trend has of a closed loop; one that is not of both loops keeps its
// own.
func InClosed(name string) string {
	if t, ok := TrendNamed(name); ok && t.Looped() {
		return t.In(Closed)
	}
	return name
}

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

// Consumers reports whether it counts what consumers always do, which is not there where a driver
// only sends.
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
