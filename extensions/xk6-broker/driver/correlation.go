package driver

// Correlation names the headers that relate a reply to its request, for brokers without requests of
// their own. The names are those that programs on such brokers use.
type Correlation struct {
	ID      string // repeated by the reply
	ReplyTo string // the topic of the reply
}

// Correlated has the names of AMQP's properties, for brokers without names of their own.
var Correlated = Correlation{ID: "correlation-id", ReplyTo: "reply-to"}
