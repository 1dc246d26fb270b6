package load

// Trend is a latency that is measured for each message. All are in nanoseconds within Go; see docs/methodology.md.
type Trend uint8

// Trends.
const (
	PublishLatency Trend = iota // due → confirmed
	PublishTime                 // sent → confirmed
	E2ELatency                  // due → received
	E2ETime                     // sent → received
	ScheduleLag                 // due → sent
	GeneratorLag                // the part of it that is the generator's own: when it would have been sent by a punctual generator → sent
	SettleTime                  // settle called → confirmed by the broker
	RedeliveryTime              // requeued → received again
	FailedLatency               // due → the error of a send that failed
	RequestLatency              // due → the reply received
	RequestTime                 // sent → the reply received
	NumTrends      = iota
)

//nolint:gochecknoglobals // a table
var trendNames = [NumTrends]string{
	"publish_latency", "publish_time", "e2e_latency", "e2e_time", "schedule_lag", "generator_lag", "settle_time", "redelivery_time",
	"failed_latency", "request_latency", "request_time",
}

// String is the metric's name without the prefix "broker_".
func (t Trend) String() string { return trendNames[t] }

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
	Foreign     // received with the stamp of a producer that this process does not know
	Negative    // received before they were sent, by the clocks of two machines
	Blocked     // sends that waited because the window was full
	NumCounters = iota
)

//nolint:gochecknoglobals // a table
var counterNames = [NumCounters]string{
	"due", "sent", "confirmed", "received", "acked", "requeued", "rejected", "bytes_sent", "bytes_received",
	"corrupted", "unstamped", "foreign", "negative", "blocked",
}

// String is the counter's name.
func (c Counter) String() string { return counterNames[c] }
