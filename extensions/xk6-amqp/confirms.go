package amqp

import (
	"math"
	"slices"
	"strconv"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// outbox is a channel in confirm mode and what was published on it and not yet confirmed.
type outbox struct {
	*channel
	returns chan amqp.Return

	sequence uint64        // of the last message published; guarded by the producer's lock, as what follows
	waiting  []outstanding // published, the last one with sequence; those that the broker has answered for have no done
	answered int           // of waiting, from its start

	mu    sync.Mutex
	heard []ack         // in the broker's order
	wake  chan struct{} // there is something in heard

	// Only the goroutine that resolves uses these.
	taken    []outstanding
	spare    []ack
	returned map[uint64]error // by sequence number
}

// outstanding is one message that the broker has not answered for.
type outstanding struct {
	confirmation *amqp.DeferredConfirmation
	done         driver.Done
	i            int
}

// everything is answered for, or never will be.
var everything = []ack{{math.MaxUint64, true}}

func newOutbox(ch *channel, returns chan amqp.Return) *outbox {
	b := &outbox{channel: ch, returns: returns, wake: make(chan struct{}, 1), returned: map[uint64]error{}}
	ch.of.socket.frames.watch(ch.number, b.hear)
	return b
}

// add notes a message. The producer's lock is held.
func (b *outbox) add(m outstanding) { b.waiting = append(b.waiting, m) }

// hear notes an answer of the broker's.
func (b *outbox) hear(a ack) {
	b.mu.Lock()
	b.heard = append(b.heard, a)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// resolve reports the fate of all that is published on a channel, in the order in which the broker answers, until the channel is lost and
// nothing is left, or the producer is closed and nothing is left. It is the only one to call done for what was published, so that each is
// called once.
func (p *producer) resolve(b *outbox) {
	life, abandon := p.life.Done(), p.abandon
	for !p.over(b) {
		select {
		case <-b.wake:
			b.mu.Lock()
			b.heard, b.spare = b.spare[:0], b.heard
			b.mu.Unlock()
			p.settle(b, b.spare)
		case r, ok := <-b.returns:
			if ok {
				b.note(r)
			} else {
				b.returns = nil
			}
		case <-b.gone: //nolint:errcheck // that it is gone is all there is to know here
			p.settle(b, everything)
		case <-abandon:
			p.settle(b, everything)
		case <-life: // for over to look again
			life = nil
		}
	}
}

// over reports whether nothing is left and nothing will come.
func (p *producer) over(b *outbox) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.answered < len(b.waiting) {
		return false
	}
	if b.IsClosed() {
		p.outbox, p.lost = nil, b.cause()
		return true
	}
	return p.closed
}

// settle reports the fate of messages.
func (p *producer) settle(b *outbox, of []ack) {
	p.mu.Lock()
	for _, a := range of {
		b.take(a)
	}
	p.mu.Unlock()
	for j := range b.taken {
		m := &b.taken[j]
		m.done(m.i, p.fate(b, m.confirmation))
		*m = outstanding{}
	}
	b.taken = b.taken[:0]
}

// take moves what an answer is about to taken. The producer's lock is held.
func (b *outbox) take(a ack) {
	first := b.sequence + 1 - uint64(len(b.waiting)) // the tag of waiting[0]
	if a.tag < first || a.tag > b.sequence && !a.all {
		return
	}
	end := int(min(a.tag, b.sequence) + 1 - first) //gosec:disable G115 -- a count, far below the limit
	from := end - 1
	if a.all {
		from = b.answered
	}
	for j := from; j < end; j++ {
		if b.waiting[j].done != nil {
			b.taken = append(b.taken, b.waiting[j])
			b.waiting[j] = outstanding{}
		}
	}
	for b.answered < len(b.waiting) && b.waiting[b.answered].done == nil {
		b.answered++
	}
	if b.answered == len(b.waiting) || b.answered > 1024 && 2*b.answered > len(b.waiting) {
		b.waiting = slices.Delete(b.waiting, 0, b.answered)
		b.answered = 0
	}
}

// fate waits until the library, too, has read the broker's answer for a message, the channel is lost, or Close gives up.
func (p *producer) fate(b *outbox, c *amqp.DeferredConfirmation) error {
	for waiting := true; waiting; {
		select {
		case <-c.Done():
			waiting = false
			continue
		default:
		}
		select {
		case <-c.Done():
			waiting = false
		case r, ok := <-b.returns:
			if ok {
				b.note(r)
			} else {
				b.returns = nil
			}
		case <-p.abandon:
			return p.reason
		}
	}
	// The broker returns a message before it confirms it, and the library passes both on in that order.
	for len(b.returns) > 0 {
		b.note(<-b.returns)
	}
	if err, ok := b.returned[c.DeliveryTag]; ok {
		delete(b.returned, c.DeliveryTag)
		return err
	}
	switch {
	case c.Acked():
		return nil
	case b.IsClosed():
		return b.cause()
	default:
		return errNacked
	}
}

// note remembers that the broker returned a message.
func (b *outbox) note(r amqp.Return) {
	sequence, err := strconv.ParseUint(r.MessageId, 10, 64)
	if err == nil {
		b.returned[sequence] = returned(r)
	}
}

// returned is the error that a basic.return means.
func returned(r amqp.Return) error {
	return &amqp.Error{Code: int(r.ReplyCode), Reason: r.ReplyText, Server: true}
}
