package amqp

import (
	"math"
	"slices"
	"strconv"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// outbox is a channel in confirm mode with its unconfirmed messages.
type outbox struct {
	*channel
	returns chan amqp.Return

	// Guarded by the producer's lock.
	sequence uint64        // of the last published message
	waiting  []outstanding // published, the last one with sequence; answered ones have no done
	answered int           // the number of answered ones at the start of waiting

	mu    sync.Mutex
	heard []ack         // the broker's answers in its order
	wake  chan struct{} // there is something in heard

	// Used by resolve only.
	taken    []outstanding
	spare    []ack
	returned map[uint64]error // by sequence number
}

// outstanding is a message without an answer of the broker.
type outstanding struct {
	confirmation *amqp.DeferredConfirmation
	done         driver.Done
	i            int
}

// everything answers all messages, at the end of a channel.
var everything = []ack{{math.MaxUint64, true}}

func newOutbox(ch *channel, returns chan amqp.Return) *outbox {
	b := &outbox{channel: ch, returns: returns, wake: make(chan struct{}, 1), returned: map[uint64]error{}}
	ch.conn.socket.frames.watch(ch.number, b.hear)
	return b
}

// add adds a message. The producer's lock is held.
func (b *outbox) add(m outstanding) { b.waiting = append(b.waiting, m) }

// hear adds an answer of the broker.
func (b *outbox) hear(a ack) {
	b.mu.Lock()
	b.heard = append(b.heard, a)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// resolve reports the fate of the messages published on a channel, in the order of the broker's
// answers, until the channel or the producer is closed and none is left. Only resolve calls their
// done.
func (p *producer) resolve(b *outbox) {
	life, abandon := p.life.Done(), p.abandon
	for !p.resolved(b) {
		select {
		case <-b.wake:
			b.mu.Lock()
			b.heard, b.spare = b.spare[:0], b.heard
			b.mu.Unlock()
			p.report(b, b.spare)
		case r, ok := <-b.returns:
			b.note(r, ok)
		case <-b.gone: //nolint:errcheck // the cause is read later
			p.report(b, everything)
		case <-abandon:
			p.report(b, everything)
		case <-life: // the loop's condition may have changed
			life = nil
		}
	}
}

// resolved reports whether no message is left and none will come.
func (p *producer) resolved(b *outbox) bool {
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

// report reports the fate of the messages that acks answer.
func (p *producer) report(b *outbox, acks []ack) {
	p.mu.Lock()
	for _, a := range acks {
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

// take moves the messages of an answer to taken. The producer's lock is held.
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

// fate waits until the library has read the answer too, the channel is lost, or Close gives up.
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
			b.note(r, ok)
		case <-p.abandon:
			return p.reason
		}
	}
	// The broker returns a message before it confirms it, and the library keeps that order.
	for len(b.returns) > 0 {
		r, ok := <-b.returns
		b.note(r, ok)
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

// note stores a returned message, or the end of the channel of returns.
func (b *outbox) note(r amqp.Return, ok bool) {
	if !ok {
		b.returns = nil
		return
	}
	sequence, err := strconv.ParseUint(r.MessageId, 10, 64)
	if err == nil {
		b.returned[sequence] = returned(r)
	}
}

// returned converts a basic.return to an error.
func returned(r amqp.Return) error {
	return &amqp.Error{Code: int(r.ReplyCode), Reason: r.ReplyText, Server: true}
}
