package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

type consumer struct {
	c      *conn
	config driver.ConsumerConfig
	name   string // of the group
	group  *group
	held   int  // how many messages are unsettled here
	broken bool // the connection broke since the last Receive
	closed bool
}

// replier is a consumer that can answer.
type replier struct{ *consumer }

var _ driver.Replier = replier{}

func (r *consumer) Receive(ctx context.Context, batch driver.Batch) (int, error) {
	b := r.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch {
		case r.closed:
			return 0, driver.ErrClosed
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case r.broken:
			r.broken = false
			return 0, errBroken
		case b.topics[r.config.Topic] != r.group.topic:
			return 0, errNoTopic
		}
		n, next := 0, int64(0)
		if !b.frozen {
			n, next = r.take(batch)
		}
		if n > 0 {
			return n, nil
		}
		if err := b.wait(ctx, next); err != nil && !r.closed {
			return 0, err
		}
	}
}

// take fills the batch with what is there, and otherwise tells when something will be, if anything. The lock is held.
func (r *consumer) take(batch driver.Batch) (n int, next int64) {
	f, now := r.c.b.config.Features, driver.Now()
	for n < len(batch) && len(r.group.ready) > 0 && r.held < max(r.config.Prefetch, 1) {
		d := r.group.ready[0]
		if d.visible > now {
			return n, d.visible
		}
		r.group.ready = r.group.ready[1:]
		d.attempt++
		if f.Deliver == driver.AtLeastOnce {
			r.group.unsettled[d] = r
			r.held++
		}
		m := d.message
		m.Topic, m.Received, m.Token = r.config.Topic, now, d
		if f.Attempts {
			m.Attempt = d.attempt
		}
		batch[n] = m
		n++
	}
	return n, 0
}

func (r *consumer) Settle(ctx context.Context, batch driver.Batch, o driver.Outcome) error {
	b := r.c.b
	if !b.config.Features.Settle.Has(o) {
		return fmt.Errorf("%v: %w", o, errors.ErrUnsupported)
	}
	if f := b.config.Features; !r.config.ConfirmSettle && f.SettleConfirmed != driver.Always {
		b.mu.Lock() // a frozen broker takes it and says nothing
	} else if err := b.answer(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if r.closed {
		return driver.ErrClosed
	}
	var err error
	for _, m := range batch {
		d, _ := m.Token.(*delivery)
		if r.group.unsettled[d] != r {
			err = errNotUnsettled
			continue
		}
		r.release(d)
		if o == driver.Requeue {
			r.group.requeue(d, b.config.Deliveries)
		}
		if b.config.Cumulative {
			r.releaseBefore(d)
		}
	}
	b.change()
	return err
}

// releaseBefore settles all that was sent before a message and is with this consumer. The lock is held.
func (r *consumer) releaseBefore(d *delivery) {
	for earlier, holder := range r.group.unsettled {
		if holder == r && earlier.n < d.n {
			r.release(earlier)
		}
	}
}

// release takes a delivery from this consumer. The lock is held.
func (r *consumer) release(d *delivery) {
	delete(r.group.unsettled, d)
	r.held--
}

// giveBack requeues all that is unsettled here. The lock is held.
func (r *consumer) giveBack() {
	for d, holder := range r.group.unsettled {
		if holder == r {
			r.release(d)
			r.group.requeue(d, r.c.b.config.Deliveries)
		}
	}
}

func (r *consumer) Close(context.Context) error {
	b := r.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.giveBack()
	if r.config.Group == "" && !b.shared() {
		delete(r.group.topic.groups, r.name)
	}
	delete(r.c.consumers, r)
	b.change()
	return nil
}

func (r replier) Reply(_ context.Context, to, reply driver.Message) error {
	d, ok := to.Token.(*delivery)
	if !ok || d.reply == nil {
		return errNoReplyTo
	}
	select {
	case d.reply <- copied(reply):
	default: // it has been answered
	}
	return nil
}
