package driver

// Correlation names the headers by which a request and its reply belong together, where the broker
// has no request and reply of its own: as those name them who answer requests on such brokers, so
// that a test may ask them.
type Correlation struct {
	ID      string // what the reply repeats
	ReplyTo string // the topic that the reply goes to
}

// Correlated has the names of AMQP's properties, for brokers without names of their own.
var Correlated = Correlation{ID: "correlation-id", ReplyTo: "reply-to"}
