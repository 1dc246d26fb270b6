package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Consumer is an open consumer of a driver, measured and accounted for. One goroutine at a time receives.
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
	settles  bool
	reports  bool // the driver reports each settlement that the broker has confirmed, by [Consumer.answered]
	// enveloped says that a message may have an envelope, see [unwrap].
	enveloped bool
	closed    atomic.Bool
	idle      atomic.Int64 // since when it waits for messages, or [atWork]
	receives  sync.Mutex   // what is left is read after the script's last receive

	handing sync.Mutex
	reader  *account.Reader      // of what is handed over
	waiting map[*Buffer]struct{} // received and not wholly handed over
	ahead   []*Buffer            // of these, what loops left that ended before its turn: the next receives get it, in this order

	settling sync.Mutex
	settler  *account.Reader // of what is settled; a reader serves one goroutine at a time
}

// NewConsumer opens a consumer on conn; it is ready when NewConsumer returns.
func (r *Run) NewConsumer(ctx context.Context, conn driver.Conn, t *Topic, c driver.ConsumerConfig, series *Series) (*Consumer, error) {
	d := t.Address.Driver
	opened, err := conn.NewConsumer(ctx, c)
	if err != nil {
		return nil, d.Wrap("open consumer on "+t.Name, t.explain(err))
	}
	g := t.group(c)
	g.joined(ctx, conn, c)
	if given(d, driver.OnConsumer, c.Options, func(o driver.Option) bool { return o.Selects }) {
		t.routed.Store(true)
	}
	consumer := &Consumer{
		run: r, driver: d, topic: t, conn: conn, consumer: opened, group: g, reader: g.track.Reader(), settler: g.track.Reader(), shard: r.consumers.Add(1),
		settles: d.Features.Settle != 0, enveloped: !d.Features.Headers, waiting: map[*Buffer]struct{}{},
		// To a subscriber, for which the broker keeps nothing, it answers no settlement.
		timed: (d.Features.SettleConfirmed == driver.Always && !g.subscriber) || c.ConfirmSettle,
	}
	consumer.series.Store(series)
	if s, ok := opened.(driver.SettleReporter); ok {
		consumer.reports = true
		s.OnSettled(consumer.answered)
	}
	consumer.idle.Store(driver.Now())
	t.connected(conn)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers[consumer] = struct{}{}
	return consumer, nil
}

// SetSeries sends further measurements to another series.
func (c *Consumer) SetSeries(series *Series) { c.series.Store(series) }

// Receive fills the buffer from its start and returns how many messages came. It waits for the first; when ctx ends first it
// returns 0 and no error. Errors of the broker are counted and returned. The messages are the application's, and count as received,
// only when [Consumer.HandOver] says so.
func (c *Consumer) Receive(ctx context.Context, in *Buffer) (int, error) {
	c.receives.Lock()
	defer c.receives.Unlock()
	if c.idle.Load() == atWork {
		c.idle.Store(driver.Now())
	}
	if n := c.takeAhead(in); n > 0 {
		c.idle.Store(atWork)
		return n, nil
	}
	n, err := c.consumer.Receive(ctx, in.Messages)
	if err != nil && n == 0 {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return 0, nil
		}
		kind := c.driver.KindOf(err)
		c.series.Load().fail("receive", kind)
		if kind == driver.NotFound {
			c.run.vanished(c.topic)
		}
		return 0, c.driver.Wrap("receive", err)
	}
	in.read(n, c.run.ID)
	if n == 0 {
		return 0, nil
	}
	c.idle.Store(atWork)
	c.handing.Lock()
	defer c.handing.Unlock()
	c.waiting[in] = struct{}{}
	return n, nil
}

// leaveAhead keeps what was not handed over of a buffer, which its caller has no more use for, for the next receives. If none comes, it is
// what waits with the consumer when that leaves.
func (c *Consumer) leaveAhead(in *Buffer) {
	c.handing.Lock()
	defer c.handing.Unlock()
	if _, ok := c.waiting[in]; ok {
		c.ahead = append(c.ahead, in)
	}
}

// takeAhead fills the buffer with what the first loop left that left something, and returns how many messages that were.
func (c *Consumer) takeAhead(in *Buffer) int {
	c.handing.Lock()
	defer c.handing.Unlock()
	if len(c.ahead) == 0 {
		return 0
	}
	from := c.ahead[0]
	n := in.take(from)
	c.waiting[in] = struct{}{}
	if from.next == from.n {
		delete(c.waiting, from)
		c.ahead = c.ahead[1:]
	}
	return n
}

// HandOver says that the application has the messages of the buffer up to, and without, place to: here end-to-end latency ends. Those
// before the place of the last call are handed over already. It is called for every buffer that Receive filled, or else the messages
// are none of the application's.
func (c *Consumer) HandOver(in *Buffer, to int) {
	now := driver.Now()
	c.handing.Lock()
	defer c.handing.Unlock()
	if _, ok := c.waiting[in]; !ok { // the consumer has left, and it was accounted for
		return
	}
	in.HandedAt = now
	series := c.series.Load()
	latency, transfer, wait := c.same(recording.E2ELatency), c.same(recording.E2ETime), c.same(recording.DeliveryWait)
	var bytes, recurrent int64
	from := in.next
	for i := from; i < to; i++ {
		m, stamp := &in.Messages[i], &in.Stamps[i]
		bytes += int64(len(m.Body) + stamp.size())
		if c.enveloped {
			unwrap(c.driver, m)
		}
		latent, recurs := c.account(series, in, i)
		if recurs {
			recurrent++
		}
		if latent {
			at, loop := series.at(stamp.Due), stamp.loop()
			latency.record(at, loop, now-stamp.Due)
			transfer.record(at, loop, m.Received-stamp.Sent)
			wait.record(at, loop, now-m.Received)
		}
	}
	latency.flush()
	transfer.flush()
	wait.flush()
	if to > from {
		series.count(recording.Received, int64(to-from), now)
	}
	c.run.came.Add(int64(to-from) - recurrent)
	series.add(recording.BytesReceived, bytes)
	if to > from {
		c.group.touch(&c.group.receives)
	}
	if in.next = to; to == in.n {
		delete(c.waiting, in)
	}
}

func (c *Consumer) same(t recording.Trend) same {
	return same{shard: c.shard, trend: t}
}

// touch notes once that the test has done something.
func (g *group) touch(what *bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*what = true
}

// account says what a message is to the group. It is latent, so that it has a latency, where it is a first copy, of this test. It recurs where it comes
// again and again by itself: nobody has given it back.
func (c *Consumer) account(series *Series, in *Buffer, i int) (latent, recurs bool) {
	m, stamp := &in.Messages[i], &in.Stamps[i]
	switch {
	case in.marks[i] == corrupt:
		series.add(recording.Corrupted, 1)
		c.group.strangers.note(m)
		return false, false
	case in.marks[i] == unstamped:
		series.add(recording.Unstamped, 1)
		c.group.strangers.note(m)
		return false, false
	case stamp.Run != c.run.ID: // left over from another test: its age is no latency of this one
		series.add(recording.Foreign, 1)
		c.group.strangers.note(m)
		return false, false
	}
	verdict := c.reader.Received(stamp.Producer, stamp.Sequence, m.Partition, m.Attempt)
	latent = verdict&(account.First|account.Foreign) != 0
	if verdict == account.Foreign { // nobody keeps account of it
		c.group.strangers.note(m)
	}
	if verdict&account.Foreign != 0 {
		what := c.run.stranger(stamp, c.group)
		series.add(what, 1)
		latent = what != recording.Earlier
	}
	if latent && m.Received < stamp.Sent {
		series.add(recording.Negative, 1)
	}
	recurs = verdict&account.Recurrent != 0
	if verdict&account.Redelivered != 0 {
		if at, ok := c.group.takeRequeued(messageID{stamp.Producer, stamp.Sequence}); ok {
			series.record(c.shard, recording.Open, recording.RedeliveryTime, m.Received, m.Received-at)
			recurs = false
		}
	}
	if !c.settles {
		c.reader.Settled(stamp.Producer, stamp.Sequence)
	}
	return latent, recurs
}

// stranger says what a message of this test is that no producer of its topic sent.
func (r *Run) stranger(s *Stamp, at *group) recording.Counter {
	if from := uint32(s.Producer >> 32); from != r.instance {
		if !r.shared || s.Sent < r.Started-int64(result.ClockSkew) {
			return recording.Earlier
		}
		if _, known := r.siblings.Load(from); !known {
			r.siblings.Store(from, struct{}{})
		}
		return recording.Sibling
	}
	r.mu.Lock()
	from := r.senders[s.Producer]
	r.mu.Unlock()
	switch {
	case from == nil:
	case from.Name == at.topic.Name:
		return recording.Aliased
	}
	return recording.Routed
}

// heardOf is how many other processes messages came from.
func (r *Run) heardOf() (n int) {
	r.siblings.Range(func(any, any) bool { n++; return true })
	return n
}

// Settle ends the delivery of some messages that this consumer received. stamped and stamps are theirs.
func (c *Consumer) Settle(ctx context.Context, in *Buffer, from, to int, o driver.Outcome) error {
	if from == to {
		return nil
	}
	series := c.series.Load()
	called := driver.Now()
	if o == driver.Requeue { // before the broker knows: they may come again before it has answered
		c.topic.unordered.Store(true)
		for i := from; i < to; i++ {
			if in.Stamped[i] {
				c.group.noteRequeued(in.id(i), called)
			}
		}
	}
	if err := c.consumer.Settle(ctx, in.Messages[from:to], o); err != nil {
		for i := from; i < to && o == driver.Requeue; i++ {
			c.group.takeRequeued(in.id(i))
		}
		c.doubt(in, from, to) // some of them may have been settled all the same
		series.fail(o.String(), c.driver.KindOf(err))
		if part := (*driver.PartError)(nil); errors.As(err, &part) && !c.reports {
			series.add(settled(o), int64(part.Settled))
		}
		return c.driver.Wrap(o.String(), err)
	}
	if c.timed {
		series.recordN(c.shard, recording.Open, recording.SettleTime, called, driver.Now()-called, int64(to-from))
	}
	c.group.touch(&c.group.settles)
	if c.reports {
		c.group.unanswered.Add(int64(to - from))
	} else {
		series.add(settled(o), int64(to-from))
	}
	if o == driver.Requeue {
		c.doubt(in, from, to) // the broker may give them up
		return nil
	}
	c.settling.Lock()
	defer c.settling.Unlock()
	for i := from; i < to; {
		n := in.consecutive(i, to)
		known := 0
		if in.Stamped[i] {
			known = c.settler.SettledN(in.Stamps[i].Producer, in.Stamps[i].Sequence, n)
		}
		if n > known {
			c.group.strangers.settled.Add(int64(n - known))
		}
		i += n
	}
	return nil
}

// answered counts n messages whose settlement the broker has answered. Those that it has not settled stay unanswered: they may be in its backlog.
func (c *Consumer) answered(o driver.Outcome, n int, err error) {
	series := c.series.Load()
	if err != nil {
		for range max(n, 1) {
			series.fail(o.String(), c.driver.KindOf(err))
		}
		return
	}
	c.group.unanswered.Add(-int64(n))
	series.add(settled(o), int64(n))
}

func (c *Consumer) doubt(in *Buffer, from, to int) {
	c.settling.Lock()
	defer c.settling.Unlock()
	c.group.doubt(c.settler, in, from, to)
}

func settled(o driver.Outcome) recording.Counter {
	switch o {
	case driver.Requeue:
		return recording.Requeued
	case driver.Reject:
		return recording.Rejected
	default:
		return recording.Acked
	}
}

// Close leaves the group for good, as far as this consumer goes: what then is outstanding stays with the broker, unless others read it.
func (c *Consumer) Close(ctx context.Context) error {
	c.group.dismiss()
	return c.Leave(ctx)
}

// Leave leaves the group, as one whose time is over. What was received and not settled goes back to the broker for others; what nobody
// reads is read at the end of the run to complete the account. Where the broker keeps nothing for those who are not there, the last one
// to leave expects nothing more, and what was on its way to it is drained at once.
func (c *Consumer) Leave(ctx context.Context) error {
	if !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	c.run.mu.Lock()
	delete(c.run.readers, c)
	c.run.mu.Unlock()
	left, last := driver.Now(), c.group.leave(c.conn)
	if !c.group.kept {
		if last {
			c.group.track.Close()
		}
		c.readRest(ctx, last)
	}
	err := c.consumer.Close(ctx)
	if !last && !c.group.kept {
		c.group.parted(left, driver.Now())
	}
	if last { // whoever takes the place over gets no copy of what came to this one
		c.group.vacate()
	}
	return c.driver.Wrap("close consumer", err)
}
