package engine

import (
	"context"
	"errors"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// outcomes are the counters of settlements.
var outcomes = map[driver.Outcome]recording.Counter{
	driver.Ack: recording.Acked, driver.Requeue: recording.Requeued, driver.Reject: recording.Rejected,
}

// Settle ends the delivery of some messages of the buffer, which this consumer received.
func (c *Consumer) Settle(ctx context.Context, in *Buffer, from, to int, o driver.Outcome) error {
	if from == to {
		return nil
	}
	series := c.series.Load()
	called := driver.Now()
	if o == driver.Requeue { // they may come again before the broker has answered
		c.topic.unordered.Store(true)
		c.group.doubtful.Store(true) // the broker may give them up
		c.group.requeue(in, from, to, called)
	}
	if err := c.consumer.Settle(ctx, in.Messages[from:to], o); err != nil {
		c.group.doubtful.Store(true) // some of them may be settled
		for i := from; o == driver.Requeue && i < to; i++ {
			c.group.takeRequeued(in.id(i))
		}
		series.Fail(o.String(), c.driver.KindOf(err))
		if part := (*driver.PartError)(nil); errors.As(err, &part) && !c.reports {
			series.add(outcomes[o], int64(part.Settled))
		}
		return c.driver.Wrap(o.String(), err)
	}
	n := int64(to - from)
	if c.timed {
		times := series.at(called).trends[recording.Open][recording.SettleTime]
		times.RecordN(c.shard, driver.Now()-called, uint64(n)) //gosec:disable G115 -- a count
	}
	c.group.settles.Store(true)
	if c.reports {
		c.group.unanswered.Add(n)
	} else {
		series.add(outcomes[o], n)
	}
	if o != driver.Requeue {
		c.settled(in, from, to)
	}
	return nil
}

// settled accounts for messages that are settled.
func (c *Consumer) settled(in *Buffer, from, to int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := from; i < to; {
		n := in.consecutive(i, to)
		if in.Stamped[i] {
			c.reader.SettledN(in.Stamps[i].Producer, in.Stamps[i].Sequence, n)
		}
		i += n
	}
}

// answered counts n messages whose settlement the broker has answered. After an error they may be in
// its backlog.
func (c *Consumer) answered(o driver.Outcome, n int, err error) {
	series := c.series.Load()
	if err == nil {
		c.group.unanswered.Add(-int64(n))
		series.add(outcomes[o], int64(n))
		return
	}
	for range max(n, 1) {
		series.Fail(o.String(), c.driver.KindOf(err))
	}
}
