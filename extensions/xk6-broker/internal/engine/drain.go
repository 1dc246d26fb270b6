package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// Expected messages that the test did not receive are read at its end. They are called drained:
// they are in no latency, and neither received nor settled.

const (
	drainPoll  = 5 * time.Millisecond
	drainBatch = 256
	drainQuiet = 50 * time.Millisecond // a subscriber has everything if nothing comes for so long
	// askEvery is how often a drain asks the broker for the rest.
	askEvery = 500 * time.Millisecond
)

// Drain bounds the reading of outstanding messages.
type Drain struct {
	Limit time.Duration                             // of each step
	Stop  <-chan struct{}                           // ends the reading early; nil is never
	Tell  func(topic, group string, missing uint64) // is called for each group that is drained; may be nil
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
func (r *Run) drain(ctx context.Context, groups []*group, d Drain) {
	ctx, cancel := d.context(ctx, d.Limit)
	defer cancel()
	var wg sync.WaitGroup
	for _, g := range groups {
		n := g.track.Outstanding()
		if n == 0 || !g.canDrain() {
			continue
		}
		if d.Tell != nil {
			d.Tell(g.topic.Name, g.account, n)
		}
		wg.Go(func() { g.drain(ctx) })
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

// drain reads the rest of a group, with a consumer of its own, until the broker has nothing more.
// If that fails, the broker's backlog decides.
func (g *group) drain(ctx context.Context) {
	g.mu.Lock()
	conn, config := g.conn, g.config
	g.mu.Unlock()
	consumer, err := conn.NewConsumer(ctx, config)
	if err != nil {
		return
	}
	d := g.drainer(consumer, g.track.Reader(), g.drainSettles())
	for quiet := 0; quiet < 2 && g.track.Outstanding() > 0; {
		n, open := d.read(ctx, askEvery)
		switch {
		case !open:
			quiet = 2
		case n > 0 || !g.exhausted(ctx):
			quiet = 0
		default:
			quiet++
		}
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.topic.run.brief(backlogTimeout))
	defer cancel()
	_ = consumer.Close(closing)
}

// drainer reads messages only to complete the account of a group.
type drainer struct {
	group    *group
	consumer driver.Consumer
	reader   *account.Reader
	settles  bool
	in       *Buffer
}

func (g *group) drainer(c driver.Consumer, r *account.Reader, settles bool) *drainer {
	return &drainer{group: g, consumer: c, reader: r, settles: settles, in: NewBuffer(drainBatch)}
}

// read receives once within a time. It returns the number of messages, and whether more can come
// before ctx ends.
func (d *drainer) read(ctx context.Context, limit time.Duration) (n int, open bool) {
	r := d.group.topic.run
	reading, stop := context.WithTimeout(ctx, limit)
	defer stop()
	n, err := d.consumer.Receive(reading, d.in.Messages)
	d.in.read(n, r.ID)
	if n == 0 && err != nil && reading.Err() == nil {
		return 0, !errors.Is(err, driver.ErrClosed) && r.sleep(ctx, driver.Now()+int64(errorPause)) == nil
	}
	d.account(ctx, d.in)
	return n, ctx.Err() == nil
}

// account settles and accounts for the messages of a buffer that are not handed over.
func (d *drainer) account(ctx context.Context, in *Buffer) {
	settled := false
	if d.settles && in.n > in.next {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.group.topic.run.brief(settleTimeout))
		defer cancel()
		settled = d.consumer.Settle(ctx, in.Messages[in.next:in.n], driver.Ack) == nil
		d.group.unread.CompareAndSwap(false, !settled)
	}
	for i := in.next; i < in.n; i++ {
		if in.Stamped[i] {
			d.reader.Drained(in.Stamps[i].Producer, in.Stamps[i].Sequence, settled)
		} else {
			d.group.strange()
		}
	}
}

// drain reads the rest of a consumer that leaves, for which the broker keeps nothing. The last one
// of its group reads until nothing is outstanding, or the drain timeout; another one until nothing
// comes for a moment, because the others get the rest.
func (c *Consumer) drain(ctx context.Context, last bool) {
	limit := time.Second
	if last {
		limit = c.run.brief(c.run.DrainTimeout())
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c.receives.Lock() // a script's receive that still waits would take the messages
	defer c.receives.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	settles := c.driver.Features.Settle.Has(driver.Ack) // so that the broker gives more
	d := c.group.drainer(c.consumer, c.reader, settles)
	for in := range c.waiting {
		d.account(ctx, in)
	}
	clear(c.waiting)
	c.ahead = nil
	received := driver.Now()
	for open := true; open; {
		var n int
		n, open = d.read(ctx, drainPoll)
		if n > 0 {
			received = driver.Now()
			continue
		}
		quiet := driver.Now() - received
		if !last || quiet >= int64(drainQuiet) && c.group.track.Outstanding() == 0 {
			return
		}
	}
	busy := driver.Now()-received < int64(drainQuiet)
	heldBack := c.driver.Features.Settle != 0 && c.group.track.Held() > 0 // the broker may wait for settlements
	if last && (busy || heldBack) {
		c.group.mu.Lock()
		defer c.group.mu.Unlock()
		c.group.cut = true
	}
}
