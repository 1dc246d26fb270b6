package load

import "slices"

// Trend is a latency that is measured for each message. All are in nanoseconds within Go; see docs/methodology.md.
type Trend uint8

// Trends.
const (
	PublishLatency Trend = iota // due → confirmed
	PublishTime                 // sent → confirmed
	E2ELatency                  // due → handed over
	E2ETime                     // sent → received
	DeliveryWait                // received → handed over
	ScheduleLag                 // due → sent
	GeneratorLag                // the part of it that is the generator's own: when it would have been sent by a punctual generator → sent
	SettleTime                  // settle called → confirmed by the broker
	RedeliveryTime              // requeued → received again
	FailedLatency               // due → the error of a send that failed
	RequestLatency              // due → the reply received
	RequestTime                 // sent → the reply received
	NumTrends      = iota
)

var trendNames = [NumTrends]string{
	"publish_latency", "publish_time", "e2e_latency", "e2e_time", "delivery_wait", "schedule_lag", "generator_lag", "settle_time", "redelivery_time",
	"failed_latency", "request_latency", "request_time",
}

// String is the metric's name without the prefix "broker_".
func (t Trend) String() string { return trendNames[t] }

// Consumers tells whether the trend is measured where messages are received.
func (t Trend) Consumers() bool {
	switch t {
	case E2ELatency, E2ETime, DeliveryWait, SettleTime, RedeliveryTime:
		return true
	}
	return false
}

// Counter counts messages, bytes or events.
type Counter uint8

// Counters.
const (
	Due       Counter = iota // arrivals whose time has come
	Sent                     // handed to the client library
	Confirmed                // confirmed by the broker, in the driver's sense
	Received                 // received, copies included
	Acked
	Requeued
	Rejected
	BytesSent
	BytesReceived
	Corrupted   // stamp or body damaged on the way
	Unstamped   // received without a stamp: nothing is known of them
	Foreign     // received with the stamp of another test
	Sibling     // received with the stamp of another process of this test
	Earlier     // of those, sent before this process had begun, or where it is alone: by another test of the same name, or by a process that began long before
	Routed      // received from another topic of this process: dead letters, wildcards, what was forwarded
	Aliased     // received from the same topic at another address of the broker: their account is not kept
	Negative    // received before they were sent, by the clocks of two machines
	Blocked     // sends that waited because the window was full, or all workers were busy
	Unaccounted // confirmed without a stamp: nothing is known of what becomes of them
	NumCounters = iota
)

var counterNames = [NumCounters]string{
	"due", "sent", "confirmed", "received", "acked", "requeued", "rejected", "bytes_sent", "bytes_received",
	"corrupted", "unstamped", "foreign", "sibling", "earlier", "routed", "aliased", "negative", "blocked", "unaccounted",
}

// String is the counter's name.
func (c Counter) String() string { return counterNames[c] }

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

// ClosedSuffix is added to the name of a trend of a closed loop, where the topic has an open one too.
const ClosedSuffix = "_closed"

func nameOf(l Loop, t Trend) string {
	if l == Closed {
		return t.String() + ClosedSuffix
	}
	return t.String()
}

// Looped tells whether the trend is measured of both loops, apart.
func (t Trend) Looped() bool {
	switch t {
	case SettleTime, RedeliveryTime, ScheduleLag, GeneratorLag:
		return false
	}
	return true
}

// closedName is the name of the same trend of a closed loop; one that is not of both loops keeps its own.
func closedName(name string) string {
	if i := slices.Index(trendNames[:], name); i >= 0 && Trend(i).Looped() {
		return name + ClosedSuffix
	}
	return name
}
