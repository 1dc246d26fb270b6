package amqp

import (
	"math"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// token returns the handle of a message. Handles are allocated many at a time.
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

// tokenOf returns the handle of a message; nil if this driver did not receive it.
func tokenOf(m driver.Message) *token {
	t, _ := m.Token.(*token)
	return t
}

// message converts a delivery.
func (r *consumer) message(in *intake, d *amqp.Delivery, now int64) driver.Message {
	t := in.token(d)
	m := driver.Message{Token: t, Body: d.Body, Topic: r.topic, Received: now, Properties: propertiesOf(d)}
	if d.Exchange != "" && d.RoutingKey != r.topic {
		m.Key = []byte(d.RoutingKey)
	}
	if len(d.Headers) > 0 {
		m.Headers = headersOf(d.Headers)
		t.offset, _ = integer(d.Headers, streamOffset)
	}
	if r.conn.mode == stream {
		return m
	}
	m.Attempt = 1
	if d.Redelivered {
		m.Attempt = 2
	}
	if count, ok := integer(d.Headers, deliveryCount); ok && count >= int64(m.Attempt) && count < math.MaxInt32 {
		m.Attempt = int32(count) + 1 //gosec:disable G115 -- a count, far below the limit
	}
	return m
}
