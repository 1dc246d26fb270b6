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
	r, reader := g.topic.run, g.track.Reader()
	settles := g.drainSettles()
	in := NewBuffer(drainBatch)
	for ctx.Err() == nil {
		n, err := consumer.Receive(ctx, in.Messages)
		if err != nil && n == 0 {
			if errors.Is(err, driver.ErrClosed) || r.sleep(ctx, driver.Now()+int64(errorPause)) != nil {
				return
			}
			continue
		}
		in.read(n, r.ID)
		settled := false
		if settles {
			settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.brief(settleTimeout))
			settled = consumer.Settle(settling, in.Messages[:n], driver.Ack) == nil
			cancel()
			if !settled {
				g.unread.Store(true)
			}
		}
		g.drained(reader, in, settled)
	}
}

// drained accounts for what is not handed over of a buffer.
func (g *group) drained(reader *account.Reader, in *Buffer, settled bool) {
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
	for in := range c.waiting {
		c.group.drained(c.reader, in, false)
		c.release(ctx, in.Messages[in.next:in.n])
	}
	clear(c.waiting)
	c.ahead = nil
	in := NewBuffer(drainBatch)
	for received := began; ; {
		n, open := c.drainSome(ctx, in)
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

// drainSome accounts for what comes within a moment. It returns how many messages that were, and
// whether more can come.
func (c *Consumer) drainSome(ctx context.Context, in *Buffer) (n int, open bool) {
	reading, stop := context.WithTimeout(ctx, drainPoll)
	n, err := c.consumer.Receive(reading, in.Messages)
	stop()
	in.read(n, c.run.ID)
	if n == 0 && err != nil && reading.Err() == nil {
		open := !errors.Is(err, driver.ErrClosed) && c.run.sleep(ctx, driver.Now()+int64(errorPause)) == nil
		return 0, open
	}
	c.group.drained(c.reader, in, false)
	c.release(ctx, in.Messages[:n])
	return n, true
}

// release settles drained messages, so that the broker gives more.
func (c *Consumer) release(ctx context.Context, batch driver.Batch) {
	if len(batch) > 0 && c.driver.Features.Settle.Has(driver.Ack) {
		_ = c.consumer.Settle(ctx, batch, driver.Ack) // if it fails, no more comes
	}
}
