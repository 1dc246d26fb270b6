package nats

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// NewProducer implements [driver.Conn].
func (c streamConn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	acks, err := newReplies(c.nc, config.Options.Duration("ackTimeout"), jetstream.ErrAsyncPublishTimeout, published)
	if err != nil {
		return nil, err
	}
	p := &streamProducer{conn: c.conn, subject: config.Topic, acks: acks}
	if err := c.subscribed(ctx, acks.sub.Subject); err != nil {
		acks.close(ctx)
		return nil, err
	}
	c.watch(p)
	return p, nil
}

// streamProducer publishes to a stream; the PubAck is the confirmation.
type streamProducer struct {
	conn    *conn
	subject string
	acks    *replies
}

// Send implements [driver.Producer].
func (p *streamProducer) Send(ctx context.Context, b driver.Batch, done driver.Done) {
	if err := ctx.Err(); err != nil {
		for i := range b {
			done(i, err)
		}
		return
	}
	now := driver.Now()
	for i := range b {
		reply, ticket, err := p.acks.expect(i, done, now)
		if err != nil {
			done(i, err)
			continue
		}
		if err := publish(p.conn.nc, p.subject, reply, &b[i]); err != nil {
			p.acks.resolve(ticket, err)
		}
	}
}

// Close implements [driver.Producer].
func (p *streamProducer) Close(ctx context.Context) error {
	p.acks.close(ctx)
	p.conn.unwatch(p)
	return nil
}

// lost fails what is pending: whether the broker has it will not be known.
func (p *streamProducer) lost(error) { p.acks.fail(nats.ErrDisconnected) }
func (p *streamProducer) regained()  {}

func (p *streamProducer) failed(_ *nats.Subscription, err error) {
	if denies(err, "Publish", p.subject) {
		p.acks.fail(err)
	}
}

// published reads a PubAck. The common one, such as {"stream":"S","seq":1}, is known by its start and its end: nothing else is in it.
func published(msg *nats.Msg) error {
	if stored(msg.Data) {
		return nil
	}
	if len(msg.Data) == 0 && msg.Header.Get("Status") == "503" {
		return jetstream.ErrNoStreamResponse
	}
	var ack struct {
		Error     *jetstream.APIError `json:"error"`
		Stream    string              `json:"stream"`
		Duplicate bool                `json:"duplicate"`
	}
	switch err := json.Unmarshal(msg.Data, &ack); {
	case err != nil:
		return jetstream.ErrInvalidJSAck
	case ack.Error != nil:
		return ack.Error
	case ack.Stream == "":
		return jetstream.ErrInvalidJSAck
	case ack.Duplicate:
		return errDuplicate
	}
	return nil
}

// stored tells whether an ack starts with the stream and ends with the sequence number.
func stored(ack []byte) bool {
	last := len(ack) - 1
	if last < 0 || ack[last] != '}' || !bytes.HasPrefix(ack, []byte(`{"stream":"`)) {
		return false
	}
	number := last
	for number > 0 && ack[number-1] >= '0' && ack[number-1] <= '9' {
		number--
	}
	return number < last && bytes.HasSuffix(ack[:number], []byte(`"seq":`))
}
