package recording

// Trend is a latency that is measured for each message, in nanoseconds.
type Trend uint8

// Trends.
const (
	PublishLatency Trend = iota
	PublishTime
	E2ELatency
	E2ETime
	DeliveryWait
	ScheduleLag
	GeneratorLag // the generator's own part of the schedule lag
	SettleTime
	RedeliveryTime
	FailedLatency
	RequestLatency
	RequestTime
	NumTrends = iota
)

// trends has a trend's name, its title, and its first and last instant.
var trends = [NumTrends]struct {
	name, title, span string
	looped            bool   // the open and the closed loop have distributions of their own
	consumers         bool   // measured when messages are received
	op                string // of producers, whose failures are missing from it
}{
	PublishLatency: {"publish_latency", "publish latency", "due → confirmed", true, false, "send"},
	PublishTime:    {"publish_time", "publish time", "sent → confirmed", true, false, "send"},
	E2ELatency:     {"e2e_latency", "end-to-end latency", "due → handed over", true, true, ""},
	E2ETime:        {"e2e_time", "end-to-end time", "sent → received", true, true, ""},
	DeliveryWait:   {"delivery_wait", "delivery wait", "received → handed over", true, true, ""},
	ScheduleLag:    {"schedule_lag", "schedule lag", "due → sent", false, false, ""},
	GeneratorLag:   {"generator_lag", "generator lag", "", false, false, ""},
	SettleTime:     {"settle_time", "settle time", "ack → confirmed", false, true, ""},
	RedeliveryTime: {"redelivery_time", "redelivery time", "requeued → received", false, true, ""},
	FailedLatency:  {"failed_latency", "failed sends", "due → error", true, false, ""},
	RequestLatency: {"request_latency", "request latency", "due → reply", true, false, "request"},
	RequestTime:    {"request_time", "request time", "sent → reply", true, false, "request"},
}

// String returns the metric's name without the prefix "broker_".
func (t Trend) String() string { return trends[t].name }

// Title returns the name for people.
func (t Trend) Title() string { return trends[t].title }

// Label returns the title and, in brackets, the first and the last instant.
func (t Trend) Label() string {
	if trends[t].span == "" {
		return trends[t].title
	}
	return trends[t].title + " (" + trends[t].span + ")"
}

// Consumers reports whether the trend is measured when messages are received.
func (t Trend) Consumers() bool { return trends[t].consumers }

// Looped reports whether the open and the closed loop have distributions of their own.
func (t Trend) Looped() bool { return trends[t].looped }

// Operation returns the operation that the trend measures: "send", "request" or "".
func (t Trend) Operation() string { return trends[t].op }

// TrendNamed returns the trend of a name; false if there is none.
func TrendNamed(name string) (Trend, bool) {
	for t := range Trend(NumTrends) {
		if trends[t].name == name {
			return t, true
		}
	}
	return 0, false
}

// Loop is the kind of a message's due time. The latencies of the two are never added up.
type Loop uint8

// Loops.
const (
	Open     Loop = iota // due by a schedule
	Closed               // due when it is sent: there is no schedule, and waiting does not show
	NumLoops = iota
)

// String is the value of the tag "loop".
func (l Loop) String() string { return [...]string{"open", "closed"}[l] }

// ClosedSuffix ends the name of a trend of a closed loop, if the topic has an open one too.
const ClosedSuffix = "_closed"

// In is the name of the trend, measured in a loop, where a topic has both.
func (t Trend) In(l Loop) string {
	if l == Closed {
		return t.String() + ClosedSuffix
	}
	return t.String()
}

// InClosed returns the name of a trend in a closed loop beside an open one.
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

// counters has a counter's name, its meaning, and whether the page shows it though it be 0.
var counters = [NumCounters]struct {
	name, doc string
	always    bool
}{
	Due:           {"due", "arrivals whose time had come", true},
	Sent:          {"sent", "handed to the client library", true},
	Confirmed:     {"confirmed", "confirmed by the broker, in the driver's sense", true},
	Received:      {"received", "handed over to the application, copies included", true},
	Acked:         {"acked", "acknowledged", false},
	Requeued:      {"requeued", "given back, to be delivered again", false},
	Rejected:      {"rejected", "refused for good", false},
	BytesSent:     {"bytes_sent", "bytes of bodies sent", true},
	BytesReceived: {"bytes_received", "bytes of bodies received", true},
	Corrupted:     {"corrupted", "damaged on the way: stamp or body", true},
	Unstamped:     {"unstamped", "received without a stamp", false},
	Unaccounted:   {"unaccounted", "sent without a stamp", false},
	Foreign:       {"foreign", "received with the stamp of another test", false},
	Sibling:       {"sibling", "received from another process of this test", false},
	Earlier:       {"earlier", "received, and sent under this test's name before this process began", false},
	Routed:        {"routed", "received by way of another topic of this test: dead letters, wildcards, forwarding", false},
	Aliased:       {"aliased", "received from this topic at another address of the broker: in no account", false},
	Negative:      {"negative", "received before they were sent, by the clocks of two machines", false},
	Blocked:       {"blocked", "sends that waited because the window was full, or all workers were busy", false},
	Unanswered:    {"unanswered", "requests that were sent and had no reply in time", false},
	StrayReplies:  {"stray_replies", "replies to no waiting request: late, again, or of another test", false},
}

// String returns the counter's name.
func (c Counter) String() string { return counters[c].name }

// Doc returns the counter's meaning.
func (c Counter) Doc() string { return counters[c].doc }

// Always reports whether the page shows the counter though it be 0.
func (c Counter) Always() bool { return counters[c].always }

// Consumers reports whether only consumers count it, always.
func (c Counter) Consumers() bool { return c == Received || c == BytesReceived || c == Corrupted }

// Bytes reports whether it counts bytes.
func (c Counter) Bytes() bool { return c == BytesSent || c == BytesReceived }

var outcomes = map[Counter]string{Acked: "ack", Requeued: "requeue", Rejected: "reject"}

// Outcome is the value of the tag outcome of a counter of settled messages; "" of another counter.
func (c Counter) Outcome() string { return outcomes[c] }
