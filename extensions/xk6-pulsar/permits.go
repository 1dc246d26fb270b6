package pulsar

import (
	"context"
	"slices"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// delivery is a message as it came. It is what Message.Token holds.
type delivery struct {
	pulsar.Message
	from     *receiver
	received int64 // by driver.Now
	settled  bool
	void     bool // the client has forgotten it, so that the broker delivers it again
}

// permits bound what is with a consumer and not settled. The broker sends as many messages as the client has permits, and the client gives a
// permit back for each that is taken from its queue: so they are received when they come, by the interceptor, and taken from the queue, which nobody
// else reads, when they are settled.
//
// The client keeps permits back until they are half of its queue. So that this does not keep the consumer from what its prefetch has room for, the queue
// is a part of the prefetch, and as many messages as the rest are taken from it at once; but one stays while any is not settled, to find out what follows.
//
// The client empties its queue when it connects again, with no word. What was in it is found out by the next that is taken: all before it of its
// partition are void, and so is what was taken before and is not settled.
type permits struct {
	beyond  int // how many that are not settled need not be in the client's queues
	mu      sync.Mutex
	queues  map[int32][]*delivery // what the client has in its queues, by partition, as far as is known
	queued  int                   // in all of them
	out     map[int32][]*delivery // taken from them and not settled, but for those that were since
	open    int                   // not settled, and not void
	changed chan struct{}         // holds one token when there may be something to take
}

// queueOf is how long the client's queue is for a prefetch. Permits of one of up to three are given back one by one; of a longer one no more than half, an
// eighth of the prefetch, is kept back.
func queueOf(prefetch int) int { return max(min(prefetch, 3), prefetch/4) }

func newPermits(prefetch int) *permits {
	return &permits{beyond: prefetch - queueOf(prefetch), queues: map[int32][]*delivery{}, out: map[int32][]*delivery{}, changed: make(chan struct{}, 1)}
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

// change has the queues looked at, where there is something to take from them. The lock is held.
func (p *permits) change() {
	if p.tooMany() {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// tooMany reports whether more is in the client's queues than must be. The lock is held.
func (p *permits) tooMany() bool { return p.queued > max(min(p.open, 1), p.open-p.beyond) }

// settle notes that messages are done with, and gives their identifiers. Those of another receiver went with their topic.
func (p *permits) settle(b driver.Batch, of *receiver) (ids []pulsar.MessageID, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids = make([]pulsar.MessageID, 0, len(b))
	for _, m := range b {
		d, ok := m.Token.(*delivery)
		if !ok || d.settled {
			err = errSettled
			continue
		}
		if d.from != of {
			err = errDeleted
			continue
		}
		p.done(d)
		ids = append(ids, d.ID())
	}
	p.change()
	return ids, err
}

// done is for a message that is not settled. The lock is held.
func (p *permits) done(d *delivery) {
	d.settled = true
	if !d.void {
		p.open--
	}
}

// surplus reports whether something is to be taken from the client's queues.
func (p *permits) surplus() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tooMany()
}

// taken notes what came out of the client's queues.
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
			if i > 0 {
				p.forget(partition)
			}
			p.keep(partition, d)
			return
		}
		p.lose(d)
	}
	p.queues[partition] = nil
}

// keep notes what is out of the queues and not settled. The lock is held.
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

// forget is for a partition from which all comes again that is not settled. The lock is held.
func (p *permits) forget(partition int32) {
	for _, d := range p.out[partition] {
		p.lose(d)
	}
	p.out[partition] = nil
}

// lose notes that a message comes again. The lock is held.
func (p *permits) lose(d *delivery) {
	if !d.settled && !d.void {
		p.open--
	}
	d.void = true
}

// giveBack takes from the client's queues what need not be in them, until ctx ends.
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
