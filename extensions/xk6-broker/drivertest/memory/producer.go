package memory

import (
	"bytes"
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
	queue   []*outgoing // what is not done; its head is what the goroutine works on
	closed  bool
	running context.Context // ends when Close gives up waiting
	stop    context.CancelFunc
	stopped chan struct{}
	closing sync.Mutex
}

// requester is a producer that can ask for replies.
type requester struct{ *producer }

var _ driver.Requester = requester{}

// outgoing is a message that is not done.
type outgoing struct {
	record
	properties driver.Values
	place      *driver.Place // to be filled; nil where nobody asks
	served     int64         // when the server is through with it
	done       driver.Done
	i          int
	over       *sync.WaitGroup
}

func (o *outgoing) finish(err error) {
	o.done(o.i, err)
	o.over.Done()
}

func (p *producer) Send(ctx context.Context, batch driver.Batch, done driver.Done) {
	var over sync.WaitGroup
	over.Add(len(batch))
	for i, m := range batch {
		o := &outgoing{record: record{message: copied(m)}, properties: m.Properties, place: m.Place, done: done, i: i, over: &over}
		if err := p.enqueue(o); err != nil {
			o.finish(err)
		}
	}
	if p.c.b.config.Features.Async {
		return
	}
	stop := context.AfterFunc(ctx, func() { p.abandon(&over, ctx.Err()) })
	defer stop()
	over.Wait()
}

// abandon fails the messages of one batch that are not done.
func (p *producer) abandon(over *sync.WaitGroup, err error) {
	p.c.b.mu.Lock()
	var failed []*outgoing
	p.queue = slices.DeleteFunc(p.queue, func(o *outgoing) bool {
		if over == nil || o.over == over {
			failed = append(failed, o)
			return true
		}
		return false
	})
	p.c.b.change()
	p.c.b.mu.Unlock()
	for _, o := range failed {
		o.finish(err)
	}
}

// enqueue gives the message its turn at the server.
func (p *producer) enqueue(o *outgoing) error {
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
	o.n = b.arrived
	var err error
	if o.message.Partition, err = p.topic.partition(o); err != nil {
		return err
	}
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

// run serves the queue until Close.
func (p *producer) run() {
	defer close(p.stopped)
	for {
		o, err := p.next()
		if o == nil {
			return
		}
		o.finish(err)
	}
}

// next waits until the head of the queue has been served and adds it to the topic.
func (p *producer) next() (*outgoing, error) {
	b := p.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch {
		case len(p.queue) == 0 && p.closed:
			return nil, nil
		case len(p.queue) == 0 || b.frozen:
			if b.wait(p.running, 0) != nil {
				return nil, nil
			}
			continue
		}
		head := p.queue[0]
		if head.served > 0 && head.served > driver.Now() {
			if b.wait(p.running, head.served) != nil {
				return nil, nil
			}
			continue
		}
		p.queue = p.queue[1:]
		if b.topics[p.topic.name] != p.topic {
			return head, errNoTopic
		}
		head.stored = driver.Now()
		head.visible = head.stored
		if b.config.Transit != nil {
			head.visible += int64(b.config.Transit(head.n))
		}
		p.topic.add(&head.record)
		if head.place != nil && b.config.Features.Receipts {
			*head.place = head.record.place(b.config.Features.Position)
		}
		b.change()
		return head, nil
	}
}

func (p *producer) Close(ctx context.Context) error {
	p.closing.Lock()
	defer p.closing.Unlock()
	b := p.c.b
	b.mu.Lock()
	p.closed = true
	delete(p.c.producers, p)
	b.change()
	b.mu.Unlock()
	select {
	case <-p.stopped:
		return nil
	case <-ctx.Done():
	}
	p.stop()
	<-p.stopped
	p.abandon(nil, ctx.Err())
	return nil
}

func (p requester) Request(ctx context.Context, m driver.Message) (driver.Message, error) {
	reply := make(chan driver.Message, 1)
	failed := make(chan error, 1)
	var over sync.WaitGroup
	over.Add(1)
	o := &outgoing{record: record{message: copied(m), reply: reply}, over: &over, done: func(_ int, err error) {
		if err != nil {
			failed <- err
		}
	}}
	if err := p.enqueue(o); err != nil {
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

// copied takes a message out of the hands of its sender.
func copied(m driver.Message) driver.Message {
	headers := slices.Clone(m.Headers)
	for i := range headers {
		headers[i].Value = bytes.Clone(headers[i].Value)
	}
	return driver.Message{Key: bytes.Clone(m.Key), Body: bytes.Clone(m.Body), Headers: headers}
}
