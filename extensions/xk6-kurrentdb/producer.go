package kurrentdb

import (
	"context"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

// producer has one append under way, which keeps the order. Messages sent meanwhile go with the
// next.
type producer struct {
	conn      *conn
	topic     string
	kind      map[string]string
	most      int // messages of one append
	mostBytes int

	life context.Context // ends if Close gives up waiting
	stop context.CancelCauseFunc
	done chan struct{} // closed after the last append
	out  *outbox.Outbox[outgoing]
}

// outgoing is a message without an answer.
type outgoing struct {
	event *streams.AppendReq_ProposedMessage
	place *driver.Place
	done  driver.Done
	i     int
}

// NewProducer fails if the topic does not exist.
func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	if _, err := c.topic(ctx, config.Topic); err != nil {
		return nil, err
	}
	v := config.Options
	p := &producer{
		conn: c, topic: config.Topic, kind: kinds(v.String("eventType"), "application/octet-stream"),
		most: int(v.Int("batch")), mostBytes: int(v.Int("maxAppendSize")),
		done: make(chan struct{}), out: outbox.New(func(o outgoing) int { return size(o.event) }),
	}
	p.life, p.stop = context.WithCancelCause(context.Background())
	go p.run()
	return p, nil
}

// Send hands the batch to the goroutine that appends.
func (p *producer) Send(_ context.Context, b driver.Batch, done driver.Done) {
	add := make([]outgoing, 0, len(b))
	for i := range b {
		event, err := encode(&b[i], p.kind)
		if err != nil {
			done(i, err)
			continue
		}
		add = append(add, outgoing{event, b[i].Place, done, i})
	}
	if !p.out.Put(len(add), func(i int) outgoing { return add[i] }) {
		for _, o := range add {
			done(o.i, driver.ErrClosed)
		}
	}
}

// run appends messages until Close, and the ones queued before it.
func (p *producer) run() {
	defer close(p.done)
	var all []outgoing
	var events []*streams.AppendReq_ProposedMessage
	for {
		clear(events) // to free them
		if all = p.out.Next(all, p.most, p.mostBytes); len(all) == 0 {
			return
		}
		events = events[:0]
		for _, o := range all {
			events = append(events, o.event)
		}
		last, err := p.conn.append(p.life, p.topic, anyRevision, events...)
		if cause := context.Cause(p.life); err != nil && cause != nil {
			err = cause
		}
		finish(all, last, err)
	}
}

// finish reports the messages of one append, the last of them at the given revision.
func finish(all []outgoing, last uint64, err error) {
	for i, o := range all {
		if err == nil && o.place != nil {
			behind := uint64(len(all) - 1 - i) //gosec:disable G115 -- not negative
			*o.place = driver.Place{Position: driver.At(last - behind)}
		}
		o.done(o.i, err)
	}
}

// Close waits for the messages. The rest fails with ctx's error when it ends.
func (p *producer) Close(ctx context.Context) error {
	p.out.Close()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.stop(ctx.Err())
		<-p.done
	}
	p.stop(driver.ErrClosed)
	return nil
}
