package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// producer has one goroutine, which brings its messages to the broker one after the other.
type producer struct {
	c       *conn
	topic   *topic
	queue   []*outgoing
	closed  bool // no more messages
	stopped bool // the goroutine ends
	running sync.WaitGroup
}

// requester is a producer that can send requests.
type requester struct{ *producer }

var _ driver.Requester = requester{}

// outgoing is a message without an outcome.
type outgoing struct {
	record
	place  *driver.Place   // to fill, or nil
	served int64           // when a server has served it, by driver.Now
	cuts   int             // of the broker when it was sent
	batch  *sync.WaitGroup // of the messages of one Send
	done   func(err error)
}

func (p *producer) Send(ctx context.Context, batch driver.Batch, done driver.Done) {
	var outcomes sync.WaitGroup
	outcomes.Add(len(batch))
	for i, m := range batch {
		o := &outgoing{record: record{message: copied(m)}, place: m.Place, batch: &outcomes}
		o.done = func(err error) {
			done(i, err)
			outcomes.Done()
		}
		if err := p.enqueue(o, m.Properties); err != nil {
			o.done(err)
		}
	}
	if p.c.b.config.Features.Async {
		return
	}
	defer context.AfterFunc(ctx, func() { p.abandon(&outcomes, ctx.Err()) })()
	outcomes.Wait()
}

// abandon fails the queued messages of a batch, or of all if batch is nil.
func (p *producer) abandon(batch *sync.WaitGroup, err error) {
	var failed []*outgoing
	p.c.b.mu.Lock()
	p.queue = slices.DeleteFunc(p.queue, func(o *outgoing) bool {
		if batch != nil && o.batch != batch {
			return false
		}
		failed = append(failed, o)
		return true
	})
	p.c.b.change()
	p.c.b.mu.Unlock()
	for _, o := range failed {
		o.done(err)
	}
}

// enqueue gives the message its turn at the servers.
func (p *producer) enqueue(o *outgoing, properties driver.Values) error {
	b := p.c.b
	f := b.config.Features
	switch {
	case f.MaxMessageBytes > 0 && len(o.message.Body) > f.MaxMessageBytes:
		return errTooLarge
	case !f.Headers && len(o.message.Headers) > 0:
		return fmt.Errorf("headers: %w", errors.ErrUnsupported)
	case !f.Key:
		o.message.Key = nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.closed {
		return driver.ErrClosed
	}
	partition, err := p.topic.partition(o.message.Key, properties, b.arrived)
	if err != nil {
		return err
	}
	o.message.Partition, o.n, o.cuts = partition, b.arrived, b.cuts
	b.arrived++
	if b.config.Service != nil {
		first := slices.Index(b.free, slices.Min(b.free))
		b.free[first] = max(b.free[first], driver.Now()) + int64(b.config.Service(o.n))
		o.served = b.free[first]
	}
	p.queue = append(p.queue, o)
	b.change()
	return nil
}

// run brings messages to the broker until the producer is stopped.
func (p *producer) run() {
	for {
		o, err := p.next()
		if o == nil {
			return
		}
		o.done(err)
	}
}

// next waits until the first message of the queue is served and adds it to the topic.
func (p *producer) next() (*outgoing, error) {
	b := p.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for !p.stopped {
		if len(p.queue) == 0 || b.frozen {
			_ = b.wait(context.Background(), 0)
			continue
		}
		o := p.queue[0]
		if o.served > driver.Now() && o.cuts == b.cuts {
			_ = b.wait(context.Background(), o.served)
			continue
		}
		p.queue = p.queue[1:]
		b.change()
		return o, p.store(o)
	}
	return nil, nil
}

// store adds a message to the topic.
func (p *producer) store(o *outgoing) error {
	config := p.c.b.config
	if o.cuts != p.c.b.cuts {
		return errBroken
	}
	if p.c.b.topics[p.topic.name] != p.topic {
		return errNoTopic
	}
	o.stored = driver.Now()
	o.visible = o.stored
	if config.Transit != nil {
		o.visible += int64(config.Transit(o.n))
	}
	p.topic.add(&o.record)
	if o.place != nil && config.Features.Receipts {
		*o.place = o.record.place(config.Features.Position)
	}
	return nil
}

// Close waits for the queue until ctx ends, and fails the rest.
func (p *producer) Close(ctx context.Context) error {
	b := p.c.b
	b.mu.Lock()
	p.closed = true
	for len(p.queue) > 0 && b.wait(ctx, 0) == nil {
		continue
	}
	p.stopped = true
	b.change()
	b.mu.Unlock()
	p.running.Wait()
	p.abandon(nil, ctx.Err())
	return nil
}

func (p requester) Request(ctx context.Context, m driver.Message) (driver.Message, error) {
	reply := make(chan driver.Message, 1)
	failed := make(chan error, 1)
	o := &outgoing{record: record{message: copied(m), reply: reply}, done: func(err error) {
		if err != nil {
			failed <- err
		}
	}}
	if err := p.enqueue(o, m.Properties); err != nil {
		return driver.Message{}, err
	}
	select {
	case got := <-reply:
		return got, nil
	case err := <-failed:
		return driver.Message{}, err
	case <-ctx.Done():
		return driver.Message{}, ctx.Err()
	}
}

type consumer struct {
	c      *conn
	config driver.ConsumerConfig
	name   string // of the group
	group  *group
	held   int // unsettled messages
	cuts   int // of the broker at the last Receive
	closed bool
}

// replier is a consumer that can reply.
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
		case r.cuts != b.cuts:
			r.cuts = b.cuts
			r.requeueAll()
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

// take fills the batch with the visible messages. next is when the next one becomes visible.
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
	f := b.config.Features
	if !f.Settle.Has(o) {
		return fmt.Errorf("%v: %w", o, errors.ErrUnsupported)
	}
	if !r.config.ConfirmSettle && f.SettleConfirmed != driver.Always {
		b.mu.Lock() // also at a frozen broker
	} else if err := b.lock(ctx); err != nil {
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
		for earlier, holder := range r.group.unsettled {
			if b.config.Cumulative && holder == r && earlier.n < d.n {
				r.release(earlier)
			}
		}
	}
	b.change()
	return err
}

// release takes a delivery from this consumer.
func (r *consumer) release(d *delivery) {
	delete(r.group.unsettled, d)
	r.held--
}

// requeueAll requeues all unsettled messages.
func (r *consumer) requeueAll() {
	for d, holder := range r.group.unsettled {
		if holder == r {
			r.release(d)
			r.group.requeue(d, r.c.b.config.Deliveries)
		}
	}
	r.c.b.change()
}

func (r *consumer) Close(context.Context) error {
	b := r.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.requeueAll()
	if r.config.Group == "" && !b.shared() {
		delete(r.group.topic.groups, r.name)
	}
	return nil
}

func (r replier) Reply(_ context.Context, to, reply driver.Message) error {
	d, ok := to.Token.(*delivery)
	if !ok || d.reply == nil {
		return errNoReplyTo
	}
	select {
	case d.reply <- copied(reply):
	default: // it has a reply
	}
	return nil
}
