package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/track"
)

// group is the accounting of what one consumer group, or one subscriber of a fan-out, should receive.
type group struct {
	name    string // as the broker knows it; "" for a subscriber
	account string // the name of its accounting, unique within the topic
	track   *track.Group

	mu       sync.Mutex
	members  int
	backlog  atomic.Uint64       // what the broker still had at the end
	queued   atomic.Int64        // one more than what the broker said last; 0 where it has not said
	requeued map[messageID]int64 // when the messages that were given back were given back

	shared        bool  // it may have members in other processes
	earliest      bool  // expects everything, whatever was sent before
	ready, closed int64 // when the group became ready and when its last member here left, ns since the epoch; 0: not yet
}

type messageID struct{ producer, sequence uint64 }

// maxRequeued bounds what is remembered of messages given back and not seen again.
const maxRequeued = 1 << 20

// Consumer is an open consumer of a driver, measured and accounted for. One goroutine at a time receives.
type Consumer struct {
	run      *Run
	driver   *driver.Driver
	topic    *Topic
	consumer driver.Consumer
	group    *group
	reader   *track.Reader // of what is received
	series   atomic.Pointer[Series]
	shard    uint32
	timed    bool // the broker answers settlements
	settles  bool
	received atomic.Bool // the test has received something
	settled  atomic.Bool // the test has settled something
	closed   atomic.Bool
	receives sync.Mutex // a drain waits for the script's last receive

	settling sync.Mutex
	settler  *track.Reader // of what is settled; a reader serves one goroutine at a time
}

// Inbox is what a consumer receives into: messages, and what their stamps say.
type Inbox struct {
	Messages driver.Batch
	Stamps   []Stamp
	Stamped  []bool
}

// NewInbox makes room for some messages.
func NewInbox(size int) *Inbox {
	return &Inbox{Messages: make(driver.Batch, size), Stamps: make([]Stamp, size), Stamped: make([]bool, size)}
}

// NewConsumer opens a consumer on conn; it is ready when NewConsumer returns.
func (r *Run) NewConsumer(ctx context.Context, conn driver.Conn, t *Topic, c driver.ConsumerConfig, series *Series) (*Consumer, error) {
	d := t.Address.Driver
	opened, err := conn.NewConsumer(ctx, c)
	if err != nil {
		return nil, d.Wrap("open consumer on "+t.Name, err)
	}
	subscriber := d.Features.Fanout && c.Group == "" // the broker keeps nothing for it, and so answers no settlement
	g := t.join(c.Group, c.Start, subscriber)
	consumer := &Consumer{
		run: r, driver: d, topic: t, consumer: opened, group: g, reader: g.track.Reader(), settler: g.track.Reader(), shard: r.consumers.Add(1),
		settles: d.Features.Settle != 0,
		timed:   (d.Features.SettleConfirmed == driver.Always && !subscriber) || c.ConfirmSettle,
	}
	consumer.series.Store(series)
	t.note(conn, "consumer", c.Options)
	r.mu.Lock()
	r.readers = append(r.readers, consumer)
	r.mu.Unlock()
	return consumer, nil
}

// join adds a member to a group; a subscriber is a group of its own.
func (t *Topic) join(name string, start driver.Start, subscriber bool) *group {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g, ok := t.groups[name]; ok && !subscriber {
		g.members++
		return g
	}
	since := track.New
	if start == driver.StartEarliest {
		since = track.Earliest
	}
	account := name
	if subscriber {
		account = fmt.Sprintf("subscriber %d", len(t.order)+1)
	}
	g := &group{name: name, account: account, track: t.track.Group(account, since), members: 1, requeued: map[messageID]int64{}}
	g.shared, g.earliest, g.ready = t.index != nil && !subscriber, since == track.Earliest, driver.Now()
	g.track.Ready()
	if !subscriber {
		t.groups[name] = g
	}
	t.order = append(t.order, g)
	return g
}

// SetSeries sends further measurements to another series.
func (c *Consumer) SetSeries(series *Series) { c.series.Store(series) }

// Receive fills the inbox from its start and returns how many messages came. It waits for the first; when ctx ends first it
// returns 0 and no error. Errors of the broker are counted and returned.
func (c *Consumer) Receive(ctx context.Context, in *Inbox) (int, error) {
	c.receives.Lock()
	defer c.receives.Unlock()
	n, err := c.consumer.Receive(ctx, in.Messages)
	if err != nil && n == 0 {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return 0, nil
		}
		c.series.Load().fail("receive", c.driver.KindOf(err))
		return 0, c.driver.Wrap("receive", err)
	}
	c.received.Store(true)
	series := c.series.Load()
	latency, transfer := same{series: series, shard: c.shard, trend: E2ELatency}, same{series: series, shard: c.shard, trend: E2ETime}
	var bytes int64
	for i := range n {
		m, stamp := &in.Messages[i], &in.Stamps[i]
		bytes += int64(len(m.Body))
		verdict, stamped := c.account(series, m, stamp)
		in.Stamped[i] = stamped
		if verdict&(track.First|track.Foreign) != 0 {
			latency.record(m.Received - stamp.Due)
			transfer.record(m.Received - stamp.Sent)
		}
	}
	latency.flush()
	transfer.flush()
	series.add(Received, int64(n))
	series.add(BytesReceived, bytes)
	return n, nil
}

// account says what a message is to the group, and whether it carries a stamp of this run.
func (c *Consumer) account(series *Series, m *driver.Message, stamp *Stamp) (track.Verdict, bool) {
	if err := stamp.take(m, c.run.ID); err != nil {
		if errors.Is(err, errCorrupt) {
			series.add(Corrupted, 1)
		} else {
			series.add(Unstamped, 1)
		}
		return 0, false
	}
	if stamp.Run != c.run.ID { // left over from an earlier test: its age is no latency of this one
		series.add(Foreign, 1)
		return 0, false
	}
	verdict := c.reader.Received(stamp.Producer, stamp.Sequence, m.Partition, m.Attempt)
	if verdict&track.Foreign != 0 {
		series.add(Foreign, 1) // another process of this test sent it: measured here, accounted for there
	}
	if verdict&(track.First|track.Foreign) != 0 && m.Received < stamp.Sent {
		series.add(Negative, 1)
	}
	if verdict&track.Redelivered != 0 {
		if at, ok := c.group.takeRequeued(messageID{stamp.Producer, stamp.Sequence}); ok {
			series.record(c.shard, RedeliveryTime, m.Received-at)
		}
	}
	if !c.settles {
		c.reader.Settled(stamp.Producer, stamp.Sequence)
	}
	return verdict, true
}

// Settle ends the delivery of some messages that this consumer received. stamped and stamps are theirs.
func (c *Consumer) Settle(ctx context.Context, in *Inbox, from, to int, o driver.Outcome) error {
	if from == to {
		return nil
	}
	series := c.series.Load()
	called := driver.Now()
	if err := c.consumer.Settle(ctx, in.Messages[from:to], o); err != nil {
		series.fail(o.String(), c.driver.KindOf(err))
		return c.driver.Wrap(o.String(), err)
	}
	if c.timed {
		series.recordN(c.shard, SettleTime, driver.Now()-called, int64(to-from))
	}
	c.settled.Store(true)
	series.add(settled(o), int64(to-from))
	if o == driver.Requeue {
		for i := from; i < to; i++ {
			if in.Stamped[i] {
				c.group.noteRequeued(messageID{in.Stamps[i].Producer, in.Stamps[i].Sequence}, called)
			}
		}
		return nil
	}
	c.settling.Lock()
	defer c.settling.Unlock()
	for i := from; i < to; {
		n := in.consecutive(i, to)
		if in.Stamped[i] {
			c.settler.SettledN(in.Stamps[i].Producer, in.Stamps[i].Sequence, n)
		}
		i += n
	}
	return nil
}

// consecutive is how many messages from place i on, and before to, one producer numbered one after the other: mostly all of them,
// and it is quicker to account for them together.
func (in *Inbox) consecutive(i, to int) int {
	n := 1
	for in.Stamped[i] && i+n < to && in.Stamped[i+n] && in.Stamps[i+n].Producer == in.Stamps[i].Producer &&
		in.Stamps[i+n].Sequence == in.Stamps[i].Sequence+uint64(n) {
		n++
	}
	return n
}

func settled(o driver.Outcome) Counter {
	switch o {
	case driver.Requeue:
		return Requeued
	case driver.Reject:
		return Rejected
	default:
		return Acked
	}
}

// Reply answers a message that this consumer received.
func (c *Consumer) Reply(ctx context.Context, to, reply driver.Message) error {
	replier, ok := c.consumer.(driver.Replier)
	if !ok {
		return c.driver.Wrap("reply", errNoRequests)
	}
	err := replier.Reply(ctx, to, reply)
	series := c.series.Load()
	if err != nil {
		series.fail("reply", c.driver.KindOf(err))
		return c.driver.Wrap("reply", err)
	}
	series.add(BytesSent, int64(len(reply.Body)))
	return nil
}

// Close leaves the group. Where the broker keeps nothing for those who are not there, a group without members expects
// nothing more.
func (c *Consumer) Close(ctx context.Context) error {
	if !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	c.topic.mu.Lock()
	c.group.members--
	if c.group.members == 0 && c.driver.Features.Deliver == driver.AtMostOnce {
		c.group.track.Close()
		c.group.closed = driver.Now()
		delete(c.topic.groups, c.group.name)
	}
	c.topic.mu.Unlock()
	return c.driver.Wrap("close consumer", c.consumer.Close(ctx))
}

func (g *group) noteRequeued(id messageID, at int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.requeued) < maxRequeued {
		g.requeued[id] = at
	}
}

func (g *group) takeRequeued(id messageID) (int64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.requeued[id]
	delete(g.requeued, id)
	return at, ok
}
