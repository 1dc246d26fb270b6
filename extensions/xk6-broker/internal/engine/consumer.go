package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Consumer is an open consumer of a driver, measured and accounted for. One goroutine at a time
// receives.
type Consumer struct {
	run      *Run
	driver   *driver.Driver
	topic    *Topic
	conn     driver.Conn
	consumer driver.Consumer
	group    *group
	series   atomic.Pointer[Series]
	shard    uint32
	timed    bool // the broker answers settlements
	reports  bool // the driver calls answered for each settlement that the broker has answered
	closed   atomic.Bool
	idle     atomic.Int64 // since when it waits for messages, or [atWork]
	receives sync.Mutex   // the drain begins after the script's last receive

	mu      sync.Mutex
	reader  *account.Reader
	waiting map[*Buffer]struct{} // received and not fully handed over
	ahead   []*Buffer            // of these, the ones that loops left: the next receives get them in this order
}

// atWork is the idle time of a consumer that has received messages and not asked for more.
const atWork = 0

// NewConsumer opens a consumer on conn; it is ready when NewConsumer returns.
func (r *Run) NewConsumer(
	ctx context.Context, conn driver.Conn, t *Topic, c driver.ConsumerConfig, series *Series,
) (*Consumer, error) {
	d := t.Address.Driver
	opened, err := conn.NewConsumer(ctx, c)
	if err != nil {
		return nil, d.Wrap("open consumer on "+t.Name, t.explain(err))
	}
	g := t.group(c)
	g.joined(ctx, conn, c)
	t.noteOptions(effective(d, driver.OnConsumer), c.Options)
	consumer := &Consumer{
		run: r, driver: d, topic: t, conn: conn, consumer: opened, group: g, shard: r.consumers.Add(1),
		timed:  d.Features.SettleConfirmed == driver.Always && !g.subscriber || c.ConfirmSettle,
		reader: g.track.Reader(), waiting: map[*Buffer]struct{}{},
	}
	consumer.series.Store(series)
	if s, ok := opened.(driver.SettleReporter); ok {
		consumer.reports = true
		s.OnSettled(consumer.answered)
	}
	consumer.idle.Store(driver.Now())
	t.connected(conn)
	r.readers.Store(consumer, nil)
	return consumer, nil
}

// SetSeries sends further measurements to another series.
func (c *Consumer) SetSeries(series *Series) { c.series.Store(series) }

// Receive fills the buffer from its start and returns the number of messages. It waits for the
// first; if ctx ends first it returns 0 and no error. Messages count as received by
// [Consumer.HandOver] only.
func (c *Consumer) Receive(ctx context.Context, in *Buffer) (int, error) {
	c.receives.Lock()
	defer c.receives.Unlock()
	c.idle.CompareAndSwap(atWork, driver.Now())
	n := c.takeAhead(in)
	if n == 0 {
		var err error
		n, err = c.consumer.Receive(ctx, in.Messages)
		if err != nil && n == 0 {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return 0, nil
			}
			c.series.Load().Fail("receive", c.driver.KindOf(err))
			return 0, c.driver.Wrap("receive", err)
		}
		in.read(n, c.run.ID)
	}
	if n == 0 {
		return 0, nil
	}
	c.idle.Store(atWork)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[in] = struct{}{}
	return n, nil
}

// leaveAhead keeps the rest of a buffer that its caller no longer needs for the next receives.
func (c *Consumer) leaveAhead(in *Buffer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.waiting[in]; ok {
		c.ahead = append(c.ahead, in)
	}
}

// takeAhead fills the buffer with messages that a loop left, and returns their number.
func (c *Consumer) takeAhead(in *Buffer) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ahead) == 0 {
		return 0
	}
	from := c.ahead[0]
	n = in.take(from)
	if from.next == from.n {
		delete(c.waiting, from)
		c.ahead = c.ahead[1:]
	}
	return n
}

// HandOver gives the application the messages of the buffer up to, and without, place to: here
// end-to-end latency ends. Messages of earlier calls are handed over already.
func (c *Consumer) HandOver(in *Buffer, to int) {
	now := driver.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int64(to - in.next)
	if _, ok := c.waiting[in]; !ok || n <= 0 { // the consumer may have left
		return
	}
	in.HandedAt = now
	series := c.series.Load()
	latency := same{shard: c.shard, trend: recording.E2ELatency}
	transfer := same{shard: c.shard, trend: recording.E2ETime}
	wait := same{shard: c.shard, trend: recording.DeliveryWait}
	var bytes, fresh int64
	for i := in.next; i < to; i++ {
		m, stamp := &in.Messages[i], &in.Stamps[i]
		bytes += int64(len(m.Body) + stamp.front)
		counts, isFresh := c.account(series, in, i)
		if isFresh {
			fresh++
		}
		if counts {
			at, loop := series.at(stamp.Due), stamp.loop()
			latency.record(at, loop, now-stamp.Due)
			transfer.record(at, loop, m.Received-stamp.Sent)
			wait.record(at, loop, now-m.Received)
		}
	}
	latency.flush()
	transfer.flush()
	wait.flush()
	series.count(recording.Received, n, now)
	series.add(recording.BytesReceived, bytes)
	c.run.fresh.Add(fresh)
	c.group.receives.Store(true)
	if in.next = to; to == in.n {
		delete(c.waiting, in)
	}
}

// strangers are the counters of messages without a stamp of this test.
var strangers = [...]recording.Counter{
	unstamped: recording.Unstamped, corrupt: recording.Corrupted, stamped: recording.Foreign,
}

// account accounts for a message. It reports whether its latency counts, like that of a first copy
// of this test, and whether it is fresh: no copy of an earlier one.
func (c *Consumer) account(series *Series, in *Buffer, i int) (counts, fresh bool) {
	m, stamp := &in.Messages[i], &in.Stamps[i]
	if !in.Stamped[i] {
		series.add(strangers[in.marks[i]], 1)
		c.group.strange()
		return false, true
	}
	is := c.reader.Received(stamp.Producer, stamp.Sequence, m.Partition, m.Attempt)
	counts = is&(account.First|account.Foreign) != 0
	if is == account.Foreign { // it is in no account
		c.group.strange()
	}
	if is&account.Foreign != 0 {
		from := c.run.sender(stamp, c.topic)
		series.add(from, 1)
		counts = from != recording.Earlier
	}
	if counts && m.Received < stamp.Sent {
		series.add(recording.Negative, 1)
	}
	if is&account.Redelivered != 0 {
		if at, ok := c.group.takeRequeued(in.id(i)); ok {
			series.record(c.shard, recording.Open, recording.RedeliveryTime, m.Received, m.Received-at)
		}
	}
	if c.driver.Features.Settle == 0 {
		c.reader.Settled(stamp.Producer, stamp.Sequence)
	}
	return counts, is&(account.Redelivered|account.Duplicated) == 0
}

// earliestSend is how long before this process, in ns, another one of the test may have sent.
const earliestSend = int64(5 * time.Second)

// sender returns the counter of a message of this test that no producer of its topic sent.
func (r *Run) sender(s *Stamp, at *Topic) recording.Counter {
	if from := uint32(s.Producer >> 32); from != r.instance {
		if !r.shared || s.Sent < r.Started-earliestSend {
			return recording.Earlier
		}
		r.siblings.LoadOrStore(from, nil)
		return recording.Sibling
	}
	found, _ := r.senders.Load(s.Producer)
	if from, ok := found.(*Topic); ok && from.Name == at.Name {
		return recording.Aliased
	}
	return recording.Routed
}

// Close leaves the group for good: outstanding messages stay with the broker, unless other members
// read them.
func (c *Consumer) Close(ctx context.Context) error { return c.leave(ctx, true) }

// Leave leaves the group. Unsettled messages go back to the broker. If the broker keeps nothing for
// absent members, the rest is drained at once, and the last member to leave expects nothing more.
func (c *Consumer) Leave(ctx context.Context) error { return c.leave(ctx, false) }

func (c *Consumer) leave(ctx context.Context, forGood bool) error {
	if !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	c.run.readers.Delete(c)
	since := driver.Now()
	last := c.group.leave(forGood)
	if !c.group.kept {
		if last {
			c.group.track.Close()
		}
		c.drain(ctx, last)
	}
	err := c.consumer.Close(ctx)
	c.group.gone(since, last)
	return c.driver.Wrap("close consumer", err)
}

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

// answered counts n messages whose settlement the broker has answered. After an error they may be
// in its backlog.
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
