package amqp

import (
	"context"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// settled holds the settled deliveries of a channel.
type settled struct {
	low   uint64              // all tags up to this one are settled
	above map[uint64]struct{} // the settled tags above low
	count uint64              // of settled deliveries
	tags  []uint64            // of the present batch
}

// settle marks tags, in ascending order, as settled. It returns how many of the first close the row
// of settled deliveries without a gap: one frame settles all of them.
func (l *settled) settle(tags []uint64) (together int) {
	l.count += uint64(len(tags))
	for _, tag := range tags {
		if tag != l.low+1 {
			break
		}
		together++
		l.low++
		for len(l.above) > 0 {
			if _, ok := l.above[l.low+1]; !ok {
				break
			}
			delete(l.above, l.low+1)
			l.low++
		}
	}
	for _, tag := range tags[together:] {
		if l.above == nil {
			l.above = map[uint64]struct{}{}
		}
		l.above[tag] = struct{}{}
	}
	return together
}

// has reports whether a tag is settled.
func (l *settled) has(tag uint64) bool {
	if tag <= l.low || len(l.above) == 0 {
		return tag <= l.low
	}
	_, ok := l.above[tag]
	return ok
}

// settle sends one outcome for messages of one channel. It refuses a second settlement, because the
// broker would close the channel.
func (r *consumer) settle(ctx context.Context, in *intake, b driver.Batch, o driver.Outcome) error {
	if in.IsClosed() {
		return errLost
	}
	if err := in.conn.socket.ready(ctx); err != nil {
		return err
	}
	r.settling.Lock()
	defer r.settling.Unlock()
	l := &in.settled
	l.tags = l.tags[:0]
	var twice error
	for i := range b {
		tag := b[i].Token.(*token).tag //nolint:forcetypeassert // Settle has checked it
		if l.has(tag) {
			twice = errSettled
			continue
		}
		l.tags = append(l.tags, tag)
	}
	if !slices.IsSorted(l.tags) {
		slices.Sort(l.tags)
	}
	if unique := slices.Compact(l.tags); len(unique) < len(l.tags) {
		l.tags, twice = unique, errSettled
	}
	together := l.settle(l.tags)
	if together > 0 {
		if err := in.send(l.tags[together-1], together > 1, o); err != nil {
			return err
		}
	}
	for _, tag := range l.tags[together:] {
		if err := in.send(tag, false, o); err != nil {
			return err
		}
	}
	return twice
}

// send settles one delivery, or all unsettled up to it.
func (in *intake) send(tag uint64, multiple bool, o driver.Outcome) error {
	var err error
	switch o {
	case driver.Ack:
		err = in.Ack(tag, multiple)
	case driver.Requeue:
		err = in.Nack(tag, multiple, true)
	default:
		err = in.Nack(tag, multiple, false)
	}
	return in.explain(err)
}
