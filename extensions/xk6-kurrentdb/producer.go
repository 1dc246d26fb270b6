package kurrentdb

import (
	"cmp"
	"context"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

// producer has one append under way, which keeps the order. Messages sent meanwhile go with the
// next.
type producer struct {
	conn  *conn
	topic string
	kind  map[string]string
	out   *outbox.Workers[outgoing]
}

// outgoing is a message without an answer.
type outgoing struct {
	event *streams.AppendReq_ProposedMessage
	place *driver.Place
}

// NewProducer fails if the topic does not exist.
func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	if _, err := c.topic(ctx, config.Topic); err != nil {
		return nil, err
	}
	v := config.Options
	p := &producer{
		conn: c, topic: config.Topic, kind: kinds(v.String("eventType"), "application/octet-stream"),
	}
	bytes := func(o outgoing) int { return size(o.event) }
	p.out = outbox.Start(1, int(v.Int("batch")), int(v.Int("maxAppendSize")), bytes, p.append)
	return p, nil
}

// Send queues the batch.
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	p.out.Send(b, done, func(m *driver.Message) (outgoing, error) {
		event, err := encode(m, p.kind)
		return outgoing{event, m.Place}, err
	})
}

// append sends messages with one append. Their revisions end at the answer's.
func (p *producer) append(ctx context.Context, all []outbox.Item[outgoing]) {
	events := make([]*streams.AppendReq_ProposedMessage, 0, len(all))
	for _, o := range all {
		events = append(events, o.Message.event)
	}
	last, err := p.conn.append(ctx, p.topic, anyRevision, events...)
	if err != nil {
		err = cmp.Or(context.Cause(ctx), err)
	}
	for i, o := range all {
		if place := o.Message.place; err == nil && place != nil {
			behind := uint64(len(all) - 1 - i) //gosec:disable G115 -- not negative
			*place = driver.Place{Position: driver.At(last - behind)}
		}
		o.Done(err)
	}
}

// Close waits for the messages. The rest fails with ctx's error when it ends.
func (p *producer) Close(ctx context.Context) error {
	p.out.Close(ctx)
	return nil
}
