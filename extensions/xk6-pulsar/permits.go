package pulsar

import (
	"context"
	"slices"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// delivery is one delivery of a message, and the message's token.
type delivery struct {
	pulsar.Message
	received int64 // by driver.Now
	settled  bool
	void     bool // the client has dropped it, so that the broker delivers it again
}

// The client returns a permit to the broker for each message taken from its queue, up to half of
// the queue later. So an interceptor receives messages, and they are taken from the queue when they
// are settled. The queue is a part of the prefetch; the messages beyond it are taken at once.

// permits bounds the unsettled messages of a consumer. The client empties its queue when it
// connects again. The next taken message shows that: earlier ones of its partition are void, and so
// are the unsettled ones taken before.
type permits struct {
	beyond  int // the unsettled messages that need not be in the client's queues
	mu      sync.Mutex
	queues  map[int32][]*delivery // in the client's queues, by partition
	queued  int                   // the number in all queues
	out     map[int32][]*delivery // taken from the queues; some may be settled
	open    int                   // neither settled nor void
	changed chan struct{}         // holds a token if there may be a message to take
}

// queueSize returns the size of the client's queue for a prefetch. With a queue of up to three no
// permit is kept, else up to half the queue, an eighth of the prefetch.
func queueSize(prefetch int) int { return max(min(prefetch, 3), prefetch/4) }

func newPermits(prefetch int) *permits {
	return &permits{
		beyond: prefetch - queueSize(prefetch), queues: map[int32][]*delivery{}, out: map[int32][]*delivery{},
		changed: make(chan struct{}, 1),
	}
}

func (p *permits) arrive(d *delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	partition := d.ID().PartitionIdx()
	p.queues[partition] = append(p.queues[partition], d)
	p.queued++
	p.open++
	p.change()
}

// change wakes giveBack if there is a message to take. The lock is held.
func (p *permits) change() {
	if p.tooMany() {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// tooMany reports whether the client's queues hold more than necessary. The lock is held.
func (p *permits) tooMany() bool { return p.queued > max(min(p.open, 1), p.open-p.beyond) }

// settle marks messages as settled and returns their identifiers.
func (p *permits) settle(b driver.Batch) (ids []pulsar.MessageID, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids = make([]pulsar.MessageID, 0, len(b))
	for _, m := range b {
		d, ok := m.Token.(*delivery)
		if !ok || d.settled {
			err = errSettled
			continue
		}
		d.settled = true
		if !d.void {
			p.open--
		}
		ids = append(ids, d.ID())
	}
	p.change()
	return ids, err
}

// surplus reports whether there is a message to take.
func (p *permits) surplus() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tooMany()
}

// taken handles a message taken from the client's queues.
func (p *permits) taken(m pulsar.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	partition := m.ID().PartitionIdx()
	queue := p.queues[partition]
	for i, d := range queue {
		p.queued--
		if d.Message == m {
			clear(queue[:i+1])
			p.queues[partition] = queue[i+1:]
			if i > 0 { // all unsettled messages come again
				for _, earlier := range p.out[partition] {
					p.lose(earlier)
				}
				p.out[partition] = nil
			}
			p.keep(partition, d)
			return
		}
		p.lose(d)
	}
	p.queues[partition] = nil
}

// keep adds an unsettled message to out. The lock is held.
func (p *permits) keep(partition int32, d *delivery) {
	out := p.out[partition]
	if len(out) == cap(out) {
		out = slices.DeleteFunc(out, func(d *delivery) bool { return d.settled })
	}
	if !d.settled {
		out = append(out, d)
	}
	p.out[partition] = out
}

// lose marks a message that comes again. The lock is held.
func (p *permits) lose(d *delivery) {
	if !d.settled && !d.void {
		p.open--
	}
	d.void = true
}

// giveBack takes surplus messages from the client's queues, until ctx ends.
func (p *permits) giveBack(ctx context.Context, queue <-chan pulsar.ConsumerMessage) {
	for {
		for p.surplus() {
			select {
			case m := <-queue:
				p.taken(m.Message)
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return
		}
	}
}
