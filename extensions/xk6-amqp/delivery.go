package amqp

import (
	"math"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// hand fills b with what was taken, and tells how many. What was taken at once came on one channel; if that is lost by
// now nothing of it can be settled, and all of it comes again.
func (r *consumer) hand(b driver.Batch) int {
	rest := r.taken[r.handed:]
	if len(rest) == 0 {
		return 0
	}
	if rest[0].Token.(*token).intake.IsClosed() { //nolint:forcetypeassert // arrive has made it
		clear(rest)
		r.handed = len(r.taken)
		return 0
	}
	n := copy(b, rest)
	if r.conn.mode == stream {
		r.next.Store(b[n-1].Token.(*token).offset + 1) //nolint:forcetypeassert // the same
	}
	clear(rest[:n])
	r.handed += n
	return n
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
	m.Properties = propertiesOf(d)
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
