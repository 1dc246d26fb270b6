package kurrentdb

import (
	"context"

	"github.com/kurrent-io/KurrentDB-Client-Go/protos/kurrentdb/protocols/v1/streams"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver/outbox"
)

// producer appends, one append after the other, which keeps the order. What comes meanwhile goes with the next.
type producer struct {
	conn      *conn
	topic     string
	kind      map[string]string
	most      int // messages of one append
	mostBytes int

	life context.Context // ends when Close gives up waiting
	stop context.CancelCauseFunc
	over chan struct{} // closed when nothing will be appended any more
	out  *outbox.Outbox[outgoing]
}

// outgoing is a message that is not done.
type outgoing struct {
	event *streams.AppendReq_ProposedMessage
	place *driver.Place
	done  driver.Done
	i     int
}

// NewProducer fails where the topic does not exist.
func (c *conn) NewProducer(ctx context.Context, config driver.ProducerConfig) (driver.Producer, error) {
	if _, err := c.topic(ctx, config.Topic); err != nil {
		return nil, err
	}
	v, content := config.Options, "application/octet-stream"
	if v.Bool("json") {
		content = "application/json"
	}
	p := &producer{
		conn: c, topic: config.Topic, kind: kinds(v.String("eventType"), content),
		most: int(v.Int("batch")), mostBytes: int(v.Int("maxAppendSize")),
		over: make(chan struct{}), out: outbox.New(func(o outgoing) int { return size(o.event) }),
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

// run appends until Close, and what came before it.
func (p *producer) run() {
	defer close(p.over)
	var all []outgoing
	var events []*streams.AppendReq_ProposedMessage
	for {
		clear(events) // they must not live on here
		if all = p.out.Next(all, p.most, p.mostBytes); len(all) == 0 {
			return
		}
		events = events[:0]
		for _, o := range all {
			events = append(events, o.event)
		}
		last, err := p.conn.append(p.life, p.topic, whatever, events...)
		if cause := context.Cause(p.life); err != nil && cause != nil {
			err = cause
		}
		tell(all, last, err)
	}
}

// tell says what became of the messages of one append, the last of which is at that revision.
func tell(all []outgoing, last uint64, err error) {
	for i, o := range all {
		if err == nil && o.place != nil {
			*o.place = driver.Place{Position: driver.At(last - uint64(len(all)-1-i))} //gosec:disable G115 -- a count, far below the limit
		}
		o.done(o.i, err)
	}
}

// Close waits for what was sent. What remains when ctx ends fails with its error.
func (p *producer) Close(ctx context.Context) error {
	p.out.Close()
	select {
	case <-p.over:
	case <-ctx.Done():
		p.stop(ctx.Err())
		<-p.over
	}
	p.stop(driver.ErrClosed)
	return nil
}
