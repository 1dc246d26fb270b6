package amqp

import (
	"math"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// hand fills b with what was taken, and tells how many. What came on a channel that is lost by now is left out: it
// cannot be settled, and comes again.
func (r *consumer) hand(b driver.Batch) int {
	n := min(len(b), len(r.taken)-r.handed)
	if n == 0 {
		return 0
	}
	tokens := make([]token, n)
	filled := 0
	for ; r.handed < len(r.taken) && filled < n; r.handed++ {
		a := &r.taken[r.handed]
		if !a.intake.IsClosed() {
			tokens[filled] = token{a.intake, a.tag, a.replyTo, a.correlationID}
			b[filled] = r.message(a)
			b[filled].Token = &tokens[filled]
			filled++
		}
		*a = arrival{}
	}
	return filled
}

func (r *consumer) message(a *arrival) driver.Message {
	m := driver.Message{
		Body:     a.body,
		Headers:  headersOf(a.headers),
		Topic:    r.topic,
		Received: a.received,
	}
	if a.exchange != "" && a.routingKey != r.topic {
		m.Key = []byte(a.routingKey)
	}
	if r.conn.mode == stream {
		if offset, ok := integer(a.headers, streamOffset); ok {
			r.next.Store(offset + 1)
		}
		return m
	}
	m.Attempt = 1
	if a.redelivered {
		m.Attempt = 2
	}
	if count, ok := integer(a.headers, deliveryCount); ok && count >= int64(m.Attempt) && count < math.MaxInt32 {
		m.Attempt = int32(count) + 1
	}
	return m
}
