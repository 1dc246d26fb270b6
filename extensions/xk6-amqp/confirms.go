package amqp

import (
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// outbox is a channel in confirm mode and what was published on it and not yet confirmed.
type outbox struct {
	*channel
	returns  chan amqp.Return
	sequence uint64        // of the last message published; guarded by the producer's lock
	waiting  []outstanding // in the order of publishing; guarded by the producer's lock
	wake     chan struct{} // there is something in waiting

	// Only the goroutine that resolves uses these.
	taken    []outstanding
	returned map[uint64]error // by sequence number
}

// outstanding is one message that the broker has not answered for.
type outstanding struct {
	confirmation *amqp.DeferredConfirmation
	done         driver.Done
	i            int
}

func newOutbox(ch *channel, returns chan amqp.Return) *outbox {
	return &outbox{channel: ch, returns: returns, wake: make(chan struct{}, 1), returned: map[uint64]error{}}
}

// add notes a message. The producer's lock is held.
func (b *outbox) add(m outstanding) {
	b.waiting = append(b.waiting, m)
	if len(b.waiting) == 1 {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
}

// resolve reports the fate of all that is published on a channel, until the channel is lost and nothing is left, or the
// producer is closed and nothing is left. It is the only one to call done for what was published, so that each is called once.
//
// The library reports confirmations in the order of publishing, whether the broker sent them one by one or many at once.
// On one queue that is the broker's own order too.
func (p *producer) resolve(b *outbox) {
	for p.take(b) {
		for j := range b.taken {
			m := &b.taken[j]
			m.done(m.i, p.fate(b, m.confirmation))
			*m = outstanding{}
		}
	}
}

// take waits for outstanding messages and moves them to taken; false when there will be none.
func (p *producer) take(b *outbox) bool {
	for {
		p.mu.Lock()
		b.taken, b.waiting = b.waiting, b.taken[:0]
		found, closed, lost := len(b.taken) > 0, p.closed, b.IsClosed()
		if !found && lost {
			p.outbox, p.lost = nil, b.cause()
		}
		p.mu.Unlock()
		if found {
			return true
		}
		if closed || lost {
			return false
		}
		select {
		case <-b.wake:
		case <-b.gone: //nolint:errcheck // that it is gone is all there is to know here
		case <-p.life.Done():
			if p.conn.life.Err() != nil {
				<-b.gone //nolint:errcheck // the connection is being closed, and this channel with it
			}
		}
	}
}

// fate waits until the broker has answered for a message, the channel is lost, or Close gives up.
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
