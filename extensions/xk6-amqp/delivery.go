package amqp

import (
	"math"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// hand fills b with what was taken, and tells how many. What came on a channel that is lost by now is left out: it
// cannot be settled, and comes again.
func (r *consumer) hand(b driver.Batch) int {
	filled := 0
	for ; r.handed < len(r.taken) && filled < len(b); r.handed++ {
		m := &r.taken[r.handed]
		if t, ok := m.Token.(*token); ok && !t.intake.IsClosed() {
			b[filled] = *m
			filled++
			if r.conn.mode == stream {
				r.next.Store(t.offset + 1)
			}
		}
		*m = driver.Message{}
	}
	return filled
}

// token makes the handle of a message, many at a time.
func (in *intake) token(d *amqp.Delivery) *token {
	if len(in.tokens) == 0 {
		in.tokens = make([]token, 64)
	}
	t := &in.tokens[0]
	in.tokens = in.tokens[1:]
	t.intake, t.tag = in, d.DeliveryTag
	if d.ReplyTo != "" {
		t.asked = &request{d.ReplyTo, d.CorrelationId}
	}
	return t
}

// describe makes a message of a delivery.
func (r *consumer) describe(m *driver.Message, d *amqp.Delivery, t *token) {
	m.Token, m.Body, m.Topic = t, d.Body, r.topic
	if d.Exchange != "" && d.RoutingKey != r.topic {
		m.Key = []byte(d.RoutingKey)
	}
	if len(d.Headers) > 0 {
		m.Headers = headersOf(d.Headers)
		t.offset, _ = integer(d.Headers, streamOffset)
	}
	if r.conn.mode == stream {
		return
	}
	m.Attempt = 1
	if d.Redelivered {
		m.Attempt = 2
	}
	if count, ok := integer(d.Headers, deliveryCount); ok && count >= int64(m.Attempt) && count < math.MaxInt32 {
		m.Attempt = int32(count) + 1
	}
}
