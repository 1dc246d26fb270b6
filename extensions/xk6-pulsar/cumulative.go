package pulsar

import (
	"errors"
	"slices"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// cumulative is the value of ackType by which an ack is of all before it, too.
const cumulative = "cumulative"

// ackThrough acknowledges a message of each partition with all before it, in all partitions at the same time.
func (s *receiver) ackThrough(ids []pulsar.MessageID) error {
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() { errs[i] = s.AckIDCumulative(id) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// settleThrough notes that messages are done with, and all before them of their partitions, and gives the identifier of the last of each partition.
// That one was settled with a later one is no mistake.
func (p *permits) settleThrough(b driver.Batch, of *receiver) (ids []pulsar.MessageID, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range b {
		d, ok := m.Token.(*delivery)
		switch {
		case !ok:
			err = errSettled
		case d.from != of:
			err = errDeleted
		case !d.settled:
			p.done(d)
			ids = withLast(ids, d.ID())
		}
	}
	for _, id := range ids {
		partition := id.PartitionIdx()
		out := p.out[partition]
		p.out[partition] = slices.Delete(out, 0, p.doneThrough(id, out))
		p.doneThrough(id, p.queues[partition])
	}
	p.change()
	return ids, err
}

// withLast has one identifier for each partition.
func withLast(ids []pulsar.MessageID, id pulsar.MessageID) []pulsar.MessageID {
	i := slices.IndexFunc(ids, func(other pulsar.MessageID) bool { return other.PartitionIdx() == id.PartitionIdx() })
	if i < 0 {
		return append(ids, id)
	}
	if after(id, ids[i]) {
		ids[i] = id
	}
	return ids
}

// doneThrough is for the first of a partition's messages, up to the last that is settled, and gives how many these are. The lock is held.
func (p *permits) doneThrough(last pulsar.MessageID, some []*delivery) int {
	for i, d := range some {
		if after(d.ID(), last) {
			return i
		}
		if !d.settled {
			p.done(d)
		}
	}
	return len(some)
}

// after reports whether a message is behind another of its partition.
func after(one, other pulsar.MessageID) bool {
	return positioned(one).Position.Compare(positioned(other).Position) > 0
}
