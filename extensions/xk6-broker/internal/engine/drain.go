package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// What a test expected and did not receive is read at its end. These messages are called drained;
// they are in no latency, and not received or settled.

const (
	drainPoll  = 5 * time.Millisecond
	drainBatch = 256
	drainQuiet = 50 * time.Millisecond // nothing must come for so long until a subscriber has everything
	// askEvery is how often a drain asks the broker whether there is anything left.
	askEvery = 500 * time.Millisecond
)

// Drain bounds the reading of what is outstanding.
type Drain struct {
	Limit time.Duration                             // of each step
	Stop  <-chan struct{}                           // ends the reading early; nil is never
	Tell  func(topic, group string, missing uint64) // is called for what is waited for; may be nil
	Leave time.Duration                             // how long consumers that are leaving are waited for first
}

// context returns a context for reading, which ends after the limit or early.
func (d Drain) context(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	go func() {
		select {
		case <-d.Stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// drain reads on until nothing is outstanding in the groups that the broker keeps messages for, or
// nothing more can come.
func (r *Run) drain(ctx context.Context, topics []*Topic, d Drain) {
	ctx, cancel := d.context(ctx, d.Limit)
	defer cancel()
	var wg sync.WaitGroup
	for _, t := range topics {
		for _, g := range t.everyGroup() {
			if n := g.track.Outstanding(); n > 0 && g.canDrain() {
				if d.Tell != nil {
					d.Tell(t.Name, g.account, n)
				}
				wg.Go(func() { g.drain(ctx) })
			}
		}
	}
	wg.Wait()
}

// canDrain reports whether the group's remaining messages can be read. A group that settled nothing
// is not drained if the broker can report its backlog: its own unsettled messages would come first.
func (g *group) canDrain() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.kept || g.left || g.shared { // of a shared one, other processes may read on
		return false
	}
	_, reports := g.conn.(driver.Backlogger)
	return g.drainSettles() || !reports
}

// drainSettles reports whether drained messages are settled. They are not if the test received
// messages and settled none: then the broker keeps the state that the test left.
func (g *group) drainSettles() bool {
	return g.topic.Address.Driver.Features.Settle.Has(driver.Ack) && (g.settles.Load() || !g.receives.Load())
}

// drain reads what a group has left, with a consumer of its own.
func (g *group) drain(ctx context.Context) {
	r := g.topic.run
	ctx, stop := context.WithCancel(ctx)
	g.mu.Lock()
	conn, config := g.conn, g.config
	g.mu.Unlock()
	if g.held.Load() > 0 { // they come again
		g.doubtful.Store(true)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		consumer, err := conn.NewConsumer(ctx, config)
		if err != nil { // then the broker's backlog decides
			return
		}
		g.read(ctx, consumer)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.brief(backlogTimeout))
		defer cancel()
		_ = consumer.Close(closing)
	})
	for idle := 0; idle < 2; idle++ {
		before := g.track.Outstanding()
		until := driver.Now() + int64(askEvery)
		for driver.Now() < until {
			if g.track.Outstanding() == 0 || r.sleep(ctx, driver.Now()+int64(drainPoll)) != nil {
				return
			}
		}
		if g.track.Outstanding() < before || !g.exhausted(ctx) {
			idle = -1
		}
	}
}

// read receives until ctx ends.
func (g *group) read(ctx context.Context, consumer driver.Consumer) {
	reader, settles, in := g.track.Reader(), g.drainSettles(), NewBuffer(drainBatch)
	for open := true; open && ctx.Err() == nil; {
		_, open = g.readSome(ctx, ctx, consumer, reader, in, settles)
	}
}

// readSome accounts for what comes before reading ends, and settles it. It returns how many messages
// that were, and whether more can come before ctx ends.
func (g *group) readSome(
	ctx, reading context.Context, consumer driver.Consumer, reader *account.Reader, in *Buffer, settles bool,
) (n int, open bool) {
	r := g.topic.run
	n, err := consumer.Receive(reading, in.Messages)
	in.read(n, r.ID)
	if n == 0 && err != nil && reading.Err() == nil {
		return 0, !errors.Is(err, driver.ErrClosed) && r.sleep(ctx, driver.Now()+int64(errorPause)) == nil
	}
	g.drained(ctx, consumer, reader, in, settles)
	return n, true
}

// drained settles and accounts for what is not handed over of a buffer.
func (g *group) drained(
	ctx context.Context, consumer driver.Consumer, reader *account.Reader, in *Buffer, settles bool,
) {
	settled := false
	if settles && in.n > in.next {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.topic.run.brief(settleTimeout))
		defer cancel()
		settled = consumer.Settle(ctx, in.Messages[in.next:in.n], driver.Ack) == nil
		g.unread.CompareAndSwap(false, !settled)
	}
	for i := in.next; i < in.n; i++ {
		if in.Stamped[i] {
			reader.Drained(in.Stamps[i].Producer, in.Stamps[i].Sequence, settled)
			continue
		}
		g.strange(&in.Messages[i])
		if settled {
			g.held.Add(-1)
		}
	}
}

// drain reads the rest of a consumer that leaves, for which the broker keeps nothing. The last one
// of its group reads until nothing is outstanding, or the drain timeout; another one until nothing
// comes for a moment.
func (c *Consumer) drain(ctx context.Context, last bool) {
	began := driver.Now()
	ctx, cancel := context.WithTimeout(ctx, c.run.DrainTimeout())
	defer cancel()
	c.receives.Lock() // a script's receive that still waits would take what is read here
	defer c.receives.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	settles := c.driver.Features.Settle.Has(driver.Ack) // so that the broker gives more
	for in := range c.waiting {
		c.group.drained(ctx, c.consumer, c.reader, in, settles)
	}
	clear(c.waiting)
	c.ahead = nil
	in := NewBuffer(drainBatch)
	for received := began; ; {
		reading, stop := context.WithTimeout(ctx, drainPoll)
		n, open := c.group.readSome(ctx, reading, c.consumer, c.reader, in, settles)
		stop()
		now := driver.Now()
		if n > 0 {
			received = now
		}
		switch {
		case !open, !last && (n == 0 || now-began > int64(time.Second)): // the others get what comes from now on
			return
		case now-received >= int64(drainQuiet) && c.group.track.Outstanding() == 0:
			return
		case ctx.Err() != nil || c.run.stopped.Load() && now-began >= int64(time.Second):
			if c.driver.Features.Settle != 0 && c.group.track.Held() > 0 { // the broker may have held back more
				c.group.mu.Lock()
				defer c.group.mu.Unlock()
				c.group.cut = true
			}
			return
		}
	}
}

// backlogTimeout bounds a question to a broker.
const backlogTimeout = 5 * time.Second

// backlog is a broker's answer about a group.
type backlog struct {
	driver.Backlog
	at int64 // ns since the Unix epoch; 0 if there is no answer
}

// exact reports whether missing messages can be judged by it.
func (b *backlog) exact() bool { return b.at > 0 && !b.Estimate }

func (b *backlog) account() account.Backlog {
	return account.Backlog{Messages: b.Messages, Undelivered: b.Undelivered, Dropped: b.Dropped}
}

// GroupKey names a group of consumers of a run.
type GroupKey struct{ Broker, Driver, Topic, Group string }

// Backlog asks the broker how many messages of a topic a group has not settled. conn is for groups
// without members in this process.
func (r *Run) Backlog(ctx context.Context, t *Topic, name string, conn driver.Conn) (int64, error) {
	t.mu.Lock()
	g := t.groups[name]
	t.mu.Unlock()
	conns := []driver.Conn{conn}
	if g != nil {
		conns = g.connections()
	}
	b, err := t.ask(ctx, name, conns)
	return b.Messages, err
}

// Backlogs asks the brokers how many messages each group has not settled. Groups without an answer
// are left out.
func (r *Run) Backlogs(ctx context.Context) map[GroupKey]int64 {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	backlogs := map[GroupKey]int64{}
	for _, t := range r.Topics() {
		for _, g := range t.everyGroup() {
			if b := g.ask(ctx); b.at > 0 {
				backlogs[GroupKey{t.Address.String(), t.Address.Driver.Name, t.Name, g.account}] = b.Messages
			}
		}
	}
	return backlogs
}

// askBacklogs asks the brokers what they have at the end.
func (t *Topic) askBacklogs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	t.mu.Lock()
	complete := t.complete()
	t.mu.Unlock()
	if complete { // it was asked before the topic was removed
		return
	}
	for _, g := range t.everyGroup() {
		b := g.ask(ctx)
		g.final.Store(&b)
	}
}

// ask asks the broker what it has for the group, and keeps the answer.
func (g *group) ask(ctx context.Context) backlog {
	if g.subscriber { // the broker keeps nothing for it
		return backlog{}
	}
	b, _ := g.topic.ask(ctx, g.name, g.connections())
	g.backlog.Store(&b)
	return b
}

// exhausted reports whether the broker has nothing for the group.
func (g *group) exhausted(ctx context.Context) bool {
	b := g.ask(ctx)
	return b.at > 0 && b.Messages == 0
}

// ask asks by one connection after another, unless one answers for all: each first passes on what it
// has settled, so the last answer counts. With several it is an estimate.
func (t *Topic) ask(ctx context.Context, group string, conns []driver.Conn) (b backlog, err error) {
	f := t.Address.Driver.Features
	estimate := f.BacklogEstimated || len(conns) > 1
	if f.BacklogWhole {
		conns = conns[:1]
	}
	for _, conn := range conns {
		asked, ok := conn.(driver.Backlogger)
		if !ok {
			return backlog{}, errors.ErrUnsupported
		}
		if b.Backlog, err = asked.Backlog(ctx, t.Name, group); err != nil {
			return backlog{}, err
		}
		estimate = estimate || b.Estimate
	}
	b.Estimate, b.at = estimate, driver.Now()
	return b, nil
}
