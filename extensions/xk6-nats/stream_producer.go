package nats

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// NewProducer implements [driver.Conn].
func (c streamConn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	p := &streamProducer{conn: c.conn, subject: config.Topic}
	acks, err := newReplies(c.nc, config.Options.Duration("ackTimeout"), jetstream.ErrAsyncPublishTimeout, p.published)
	if err != nil {
		return nil, err
	}
	p.acks = acks
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
	stored  atomic.Bool // a message, so the stream existed
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
		reply, ticket, err := p.acks.expect(i, done, b[i].Place, now)
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

// lost fails pending messages, whose fate will not be known.
func (p *streamProducer) lost(error) { p.acks.fail(nats.ErrDisconnected) }
func (p *streamProducer) regained()  {}

func (p *streamProducer) failed(_ *nats.Subscription, err error) {
	if denies(err, "Publish", p.subject) {
		p.acks.fail(err)
	}
}

// published reads an answer of the server. No responders means that the stream does not exist, or,
// if it has stored messages, that it has no leader or was deleted.
func (p *streamProducer) published(msg *nats.Msg, place *driver.Place) error {
	err := published(msg, place)
	if err == nil && !p.stored.Load() {
		p.stored.Store(true)
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) && p.stored.Load() {
		return errNoLeader
	}
	return err
}

// published reads a PubAck. The common form, {"stream":"S","seq":1}, is recognized by its start and
// end.
func published(msg *nats.Msg, place *driver.Place) error {
	if at := sequenceOf(msg.Data); at > 0 {
		if place != nil {
			sequence, _ := strconv.ParseUint(string(msg.Data[at:len(msg.Data)-1]), 10, 64) // digits
			place.Position = inStream(sequence)
		}
		return nil
	}
	if len(msg.Data) == 0 && msg.Header.Get("Status") == "503" {
		return jetstream.ErrNoStreamResponse
	}
	var ack struct {
		Error     *jetstream.APIError `json:"error"`
		Stream    string              `json:"stream"`
		Sequence  uint64              `json:"seq"`
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
	if place != nil {
		place.Position = inStream(ack.Sequence)
	}
	return nil
}

// sequenceOf returns the start of the sequence number in an ack of the common form; 0 in any other.
func sequenceOf(ack []byte) int {
	last := len(ack) - 1
	if last < 0 || ack[last] != '}' || !bytes.HasPrefix(ack, []byte(`{"stream":"`)) {
		return 0
	}
	number := last
	for number > 0 && ack[number-1] >= '0' && ack[number-1] <= '9' {
		number--
	}
	if number == last || !bytes.HasSuffix(ack[:number], []byte(`"seq":`)) {
		return 0
	}
	return number
}
