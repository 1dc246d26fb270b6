package pulsar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// line is one producer of the client's and what is on its way through it. The client forgets messages that it had not begun with when it
// closes a producer by itself, so that all are noted here.
type line struct {
	pulsar.Producer
	p          *producer
	partitions atomic.Int32

	mu     sync.Mutex
	first  outgoing // before the oldest, and after the latest: a ring
	reason error    // why nothing can be sent any more
	empty  chan struct{}
}

// outgoing is a message on its way. It is used again, so that sending allocates little.
type outgoing struct {
	pulsar.ProducerMessage
	l              *line
	next, previous *outgoing // nil where it is done
	i              int
	done           driver.Done
	place          *driver.Place
	callback       func(pulsar.MessageID, *pulsar.ProducerMessage, error)
}

func (p *producer) outgoing() *outgoing {
	o, _ := p.messages.Get().(*outgoing)
	if o == nil {
		o = &outgoing{}
		o.callback = o.answered
	}
	return o
}

// has reports whether there is such a partition.
func (l *line) has(partition int32) error {
	if n := l.partitions.Load(); partition >= n {
		return &driver.OptionError{Name: "partition", Err: fmt.Errorf("%d: topic %s has partitions 0 to %d", partition, l.p.options.Topic, n-1)}
	}
	return nil
}

func (l *line) send(m *driver.Message, i int, done driver.Done) {
	partition := l.p.forced
	if chosen, ok := m.Properties["partition"].(int64); ok {
		partition = int32(min(chosen, 1<<30)) //gosec:disable G115 -- -1 at least
	}
	if err := l.has(partition); err != nil {
		done(i, err)
		return
	}
	o := l.p.outgoing()
	o.l, o.i, o.done, o.place = l, i, done, m.Place
	o.ProducerMessage = pulsar.ProducerMessage{Payload: m.Body, Key: string(m.Key)}
	o.Properties = properties(m)
	if after, ok := m.Properties["deliverAfter"].(time.Duration); ok {
		o.DeliverAfter = after
	}
	if ms, ok := m.Properties["eventTime"].(int64); ok && ms > 0 {
		o.EventTime = time.UnixMilli(ms)
	}
	if err := l.note(o); err != nil {
		o.finish(err, true)
		return
	}
	l.hand(o, partition)
}

// hand gives a message to the client. One that closes its producer meanwhile, as it does where the topic was deleted, panics.
func (l *line) hand(o *outgoing, partition int32) {
	defer func() {
		if recover() != nil {
			l.die(errGone)
		}
	}()
	l.p.router.choose(partition, func() { l.SendAsync(context.Background(), &o.ProducerMessage, o.callback) })
}

func (l *line) note(o *outgoing) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason != nil {
		return l.reason
	}
	last := l.first.previous
	o.previous, o.next = last, &l.first
	last.next, l.first.previous = o, o
	return nil
}

// take is true once for each message.
func (l *line) take(o *outgoing) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.next == nil {
		return false
	}
	o.previous.next, o.next.previous = o.next, o.previous
	o.next, o.previous = nil, nil
	if l.first.next == &l.first && l.empty != nil {
		close(l.empty)
		l.empty = nil
	}
	return true
}

// answered is the client's callback.
func (o *outgoing) answered(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
	l := o.l
	if !l.take(o) {
		return
	}
	if err == nil && o.place != nil {
		*o.place = positioned(id)
	}
	err = l.p.conn.journal.explain(err)
	o.finish(err, true)
	if final(err) {
		l.die(err)
	}
}

// final reports whether an error is the end of its producer.
func final(err error) bool {
	for _, end := range []error{pulsar.ErrProducerClosed, pulsar.ErrTopicNotfound, pulsar.ErrTopicTerminated, pulsar.ErrProducerFenced} {
		if err != nil && errors.Is(err, end) {
			return true
		}
	}
	return false
}

// finish calls done. What the client may still look at is not used again.
func (o *outgoing) finish(err error, again bool) {
	i, done, p := o.i, o.done, o.l.p
	if again {
		o.ProducerMessage, o.l, o.done, o.place = pulsar.ProducerMessage{}, nil, nil, nil
		p.messages.Put(o)
	}
	done(i, err)
}

// die fails what is on its way and all that comes, until there is another line.
func (l *line) die(reason error) {
	if l.blameFirst(reason) {
		l.p.again(l)
	}
	l.abandon(reason)
}

func (l *line) blameFirst(reason error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.reason == nil
	if first {
		l.reason = reason
	}
	return first
}

// blame says anew why nothing can be sent.
func (l *line) blame(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reason = reason
}

// abandon fails what is on its way.
func (l *line) abandon(reason error) {
	for {
		l.mu.Lock()
		o := l.first.next
		l.mu.Unlock()
		if o == &l.first {
			return
		}
		if l.take(o) {
			o.finish(reason, false)
		}
	}
}

// drained waits until nothing is on its way; what waits for its batch goes at once.
func (l *line) drained(ctx context.Context) error {
	l.mu.Lock()
	if l.first.next == &l.first {
		l.mu.Unlock()
		return nil
	}
	empty := make(chan struct{})
	l.empty = empty
	l.mu.Unlock()
	l.p.conn.running.Go(func() { _ = l.FlushWithCtx(ctx) })
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *line) close() error {
	l.Producer.Close()
	return nil
}
