package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// What a test expected and nobody received is read at its end, to tell what is late from what is lost. That is none of the
// application's doing: it is in no latency and no count of received or settled, and is called drained.

const (
	drainPoll  = 5 * time.Millisecond
	drainBatch = 256
	// askEvery is how often a drain asks the broker whether there is anything left to read.
	askEvery = 500 * time.Millisecond
	// restQuiet is how long nothing must come to a subscriber that leaves, and nothing be outstanding, until it has everything; restTimeout is how long
	// what is late is waited for at least.
	restQuiet   = 50 * time.Millisecond
	restTimeout = time.Second
)

// defaultPatience is how long messages are waited for that are still to come.
const defaultPatience = 10 * time.Second

// Patient asks the run to wait so long for messages that are still to come. The longest that anybody asks for counts.
func (r *Run) Patient(d time.Duration) { greatest(&r.patience, int64(d)) }

func greatest(of *atomic.Int64, n int64) {
	for was := of.Load(); n > was && !of.CompareAndSwap(was, n); was = of.Load() {
	}
}

// Patience is how long messages are waited for that are still to come. The longest delay that a message was sent with is added.
func (r *Run) Patience() time.Duration {
	return cmp.Or(time.Duration(r.patience.Load()), defaultPatience) + time.Duration(r.delay.Load())
}

// Hurry says that what may be late is waited for no longer by those who leave: it has been waited for, or somebody wants the test to end.
func (r *Run) Hurry() { r.hurries.Store(true) }

// Interrupt says that somebody wants the test to end at once: a send that has no answer then is uncertain.
func (r *Run) Interrupt() {
	r.interrupted.Store(true)
	r.Hurry()
}

// brief is how long a broker may take for what is asked without the context of the end.
func (r *Run) brief(limit time.Duration) time.Duration {
	if r.interrupted.Load() {
		return restTimeout
	}
	return limit
}

// Drain says how what is outstanding is waited for.
type Drain struct {
	Limit time.Duration   // the longest that any step of it takes
	Stop  <-chan struct{} // ends the reading early; nil is never
	Tell  func(Waiting)   // hears what is waited for; nil is nobody

	Agreed bool // all processes of the test wait while this one removes the topic
}

// reading is a context for some reading, which takes no longer than that, and ends early where that is asked for.
func (d Drain) reading(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
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

// Waiting is what a drain waits for.
type Waiting struct {
	Topic, Group string
	Messages     uint64
}

func (w Waiting) String() string {
	receivers := "the consumers"
	if w.Group != "" { // the broker has groups
		receivers = fmt.Sprintf("group %q", w.Group)
	}
	return fmt.Sprintf("%s: %d messages that %s should have received have not arrived", w.Topic, w.Messages, receivers)
}

// drain reads on until nothing is outstanding in any of the topics' groups that the broker keeps messages for, or nothing more can come.
func (r *Run) drain(ctx context.Context, topics []*Topic, d Drain) {
	ctx, cancel := d.reading(ctx, d.Limit)
	defer cancel()
	var wg sync.WaitGroup
	for _, t := range topics {
		for _, g := range t.everyGroup() {
			if n := g.track.Outstanding(); n > 0 && g.readable() {
				if d.Tell != nil {
					d.Tell(Waiting{t.Name, g.account, n})
				}
				wg.Go(func() { g.drain(ctx, r) })
			}
		}
	}
	wg.Wait()
}

func (t *Topic) everyGroup() []*group {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.order)
}

// readable tells whether what is outstanding can be read. Where the test received and settled nothing, what it holds would come first,
// and there might be no room for more: then what the broker says of its backlog must do, if it can tell.
func (g *group) readable() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.kept || g.left || g.shared { // a shared one may have members in other processes, which want to read it themselves
		return false
	}
	_, tells := g.conn.(driver.Backlogger)
	return g.settling() || !tells
}

// settling tells whether what is drained is settled. It is not where the test received and settled nothing: then the broker is left in
// the state that the test would have left it in. The lock is held.
func (g *group) settling() bool {
	return g.topic.Address.Driver.Features.Settle.Has(driver.Ack) && (g.settles || !g.receives)
}

// drain reads what a group has left, with a consumer of its own.
func (g *group) drain(ctx context.Context, r *Run) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g.mu.Lock()
	conn, config, settles := g.conn, g.config, g.settling()
	g.mu.Unlock()
	g.strangers.doubt() // they come again
	var wg sync.WaitGroup
	wg.Go(func() {
		consumer, err := conn.NewConsumer(ctx, config)
		if err != nil { // then what the broker says of its backlog must do
			return
		}
		g.read(ctx, r, consumer, settles)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.brief(backlogTimeout))
		defer cancel()
		_ = consumer.Close(closing)
	})
	for idle := 0; ctx.Err() == nil && idle < 2; {
		before := g.track.Outstanding()
		until := driver.Now() + int64(askEvery)
		for g.track.Outstanding() > 0 && driver.Now() < until && r.sleep(ctx, driver.Now()+int64(drainPoll)) == nil {
		}
		after := g.track.Outstanding()
		if after == 0 {
			break
		}
		idle++
		if after < before || !g.exhausted(ctx) {
			idle = 0
		}
	}
	stop()
	wg.Wait()
}

// exhausted tells whether the broker says that it has nothing for the group.
func (g *group) exhausted(ctx context.Context) bool {
	g.mu.Lock()
	b, ok := g.conn.(driver.Backlogger)
	g.mu.Unlock()
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	said, err := b.Backlog(ctx, g.topic.Name, g.name)
	return err == nil && said.Messages == 0
}

// read receives until ctx ends.
func (g *group) read(ctx context.Context, r *Run, consumer driver.Consumer, settles bool) {
	reader := g.track.Reader()
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
		strangers := g.drained(reader, in, 0)
		if settles {
			settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.brief(settleTimeout))
			if consumer.Settle(settling, in.Messages[:n], driver.Ack) == nil {
				g.strangers.settled.Add(strangers)
				for i := range n {
					if in.Stamped[i] {
						reader.Cleared(in.Stamps[i].Producer, in.Stamps[i].Sequence)
					}
				}
			} else { // where it fails the messages stay where they are, as far as that is known
				g.doubt(reader, in, 0, n)
			}
			cancel()
		}
	}
}

// drained accounts for the messages of a buffer from a place on, and tells how many of them have no stamp of this test.
func (g *group) drained(reader *account.Reader, in *Buffer, from int) (strangers int64) {
	for i := from; i < in.n; i++ {
		if in.Stamped[i] {
			reader.Drained(in.Stamps[i].Producer, in.Stamps[i].Sequence)
		} else {
			strangers++
			g.strangers.note(&in.Messages[i])
		}
	}
	return strangers
}

// readRest drains a consumer that leaves, for which the broker keeps nothing: what its receives have brought and nobody was given, what waits in its
// client, and what is on its way. The last one of its group reads until nothing is outstanding, or drainTimeout; another one until nothing more comes
// that was sent before it left.
func (c *Consumer) readRest(ctx context.Context, last bool) {
	left := driver.Now()
	ctx, cancel := context.WithTimeout(ctx, c.run.Patience())
	defer cancel()
	c.receives.Lock() // a script's receive that still waits would take what is read here
	defer c.receives.Unlock()
	c.handing.Lock()
	defer c.handing.Unlock()
	for in := range c.waiting {
		c.group.drained(c.reader, in, in.next)
		c.passOn(ctx, in.Messages[in.next:in.n])
	}
	clear(c.waiting)
	c.ahead = nil
	in := NewBuffer(drainBatch)
	for came := left; ; {
		n, open := c.readMore(ctx, in)
		before, after := in.sent(left)
		now := driver.Now()
		if before > 0 {
			came = now
		}
		switch {
		case !last && (!open || n == 0 || before == 0 && after > 0): // the others get what comes from now on
			return
		case !open || now-came >= int64(restQuiet) && c.group.track.Outstanding() == 0:
			return
		case ctx.Err() != nil || c.run.hurries.Load() && now-left >= int64(restTimeout):
			if c.settles && c.group.track.Held().All > 0 { // the broker may give it no more for that
				c.group.touch(&c.group.cut)
			}
			return
		}
	}
}

// readMore accounts for what comes within a moment. It returns how many messages that were, and whether more can come.
func (c *Consumer) readMore(ctx context.Context, in *Buffer) (n int, open bool) {
	reading, stop := context.WithTimeout(ctx, drainPoll)
	n, err := c.consumer.Receive(reading, in.Messages)
	stop()
	if n == 0 && err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		if errors.Is(err, driver.ErrClosed) || c.run.sleep(ctx, driver.Now()+int64(errorPause)) != nil {
			in.read(0, c.run.ID)
			return 0, false
		}
	}
	in.read(n, c.run.ID)
	c.group.drained(c.reader, in, 0)
	c.passOn(ctx, in.Messages[:n])
	return n, true
}

// passOn settles what is read to complete the account, where the broker would give no more before.
func (c *Consumer) passOn(ctx context.Context, batch driver.Batch) {
	if len(batch) > 0 && c.driver.Features.Settle.Has(driver.Ack) {
		_ = c.consumer.Settle(ctx, batch, driver.Ack) // if it fails, no more comes
	}
}
