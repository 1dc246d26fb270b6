package pulsar

import (
	"context"
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
// The client empties its queue when it connects again, with no word. What was in it is found out by the next that is taken: all before it of its
// partition are void.
type permits struct {
	mu      sync.Mutex
	queues  map[int32][]*delivery // what the client has in its queues, by partition, as far as is known
	queued  int                   // in all of them
	open    int                   // not settled, and not void
	changed chan struct{}         // holds one token when there may be something to take
}

func newPermits() *permits {
	return &permits{queues: map[int32][]*delivery{}, changed: make(chan struct{}, 1)}
}

func (p *permits) arrive(d *delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	partition := d.ID().PartitionIdx()
	p.queues[partition] = append(p.queues[partition], d)
	p.queued++
	p.open++
}

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
		d.settled = true
		if !d.void {
			p.open--
		}
		ids = append(ids, d.ID())
	}
	if p.queued > p.open {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
	return ids, err
}

// surplus tells whether more is in the client's queues than is not settled.
func (p *permits) surplus() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queued > p.open
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
			return
		}
		d.void = true
		if !d.settled {
			p.open--
		}
	}
	p.queues[partition] = nil
}

// giveBack takes from the client's queues what is settled, until ctx ends.
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
