package load

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/track"
)

// Finish ends the run: it waits for the fate of what is in flight, reads on with the consumers that are still open until
// everything expected has arrived, and closes producers and consumers. It takes no longer than drain for each of these
// steps. Connections stay the caller's. Only the first call does anything.
func (r *Run) Finish(ctx context.Context, drain time.Duration) error {
	r.mu.Lock()
	done := r.finished
	r.finished = true
	publishers, consumers := r.publishers, r.readers
	r.mu.Unlock()
	if done {
		return nil
	}
	errs := each(ctx, drain, publishers, func(ctx context.Context, p *Publisher) error {
		return p.driver.Wrap("close producer", p.producer.Close(ctx))
	})
	drainCtx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	r.drain(drainCtx, consumers)
	r.noteBacklogs(ctx)
	return errors.Join(errs, each(ctx, drain, consumers, func(ctx context.Context, c *Consumer) error {
		return c.Close(ctx)
	}))
}

// each does one thing to all, side by side, each within the time.
func each[T any](ctx context.Context, limit time.Duration, all []T, do func(context.Context, T) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, one := range all {
		wg.Go(func() { errs[i] = do(ctx, one) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

const (
	drainPoll  = 5 * time.Millisecond
	drainBatch = 256
)

// drain reads on until nothing is outstanding in any group that can still be read.
func (r *Run) drain(ctx context.Context, consumers []*Consumer) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reading := map[*group]bool{}
	var wg sync.WaitGroup
	for _, c := range consumers {
		if c.closed.Load() {
			continue
		}
		reading[c.group] = true
		wg.Go(func() { c.drain(ctx) })
	}
	for ctx.Err() == nil {
		outstanding := uint64(0)
		for g := range reading {
			outstanding += g.track.Outstanding()
		}
		if outstanding == 0 {
			break
		}
		if r.sleep(ctx, driver.Now()+int64(drainPoll)) != nil {
			break
		}
	}
	stop()
	wg.Wait()
}

// drain receives what is still to come, and settles it unless the test received and settled nothing: then the broker is left
// in the state that the test would have left it in.
func (c *Consumer) drain(ctx context.Context) {
	in := NewInbox(drainBatch)
	settles := c.driver.Features.Settle.Has(driver.Ack) && (c.settled.Load() || !c.received.Load())
	for ctx.Err() == nil {
		n, err := c.Receive(ctx, in)
		if err != nil {
			if errors.Is(err, driver.ErrClosed) || c.run.sleep(ctx, driver.Now()+int64(errorPause)) != nil {
				return
			}
			continue
		}
		if n > 0 && settles {
			settleCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
			_ = c.Settle(settleCtx, in, 0, n, driver.Ack) // counted as an error where it fails
			cancel()
		}
	}
}

// GroupKey names a group of consumers of a run.
type GroupKey struct{ Broker, Driver, Topic, Group string }

func (r *Run) eachGroup(do func(key GroupKey, t *Topic, g *group)) {
	for _, t := range r.Topics() {
		t.mu.Lock()
		groups := slices.Clone(t.order)
		t.mu.Unlock()
		for _, g := range groups {
			do(GroupKey{t.Address.String(), t.Address.Driver.Name, t.Name, g.account}, t, g)
		}
	}
}

// backlogTimeout bounds a question to a broker.
const backlogTimeout = 5 * time.Second

// Backlogs asks the brokers how many messages each group has not settled. Brokers that cannot tell, or do not answer, are left out.
func (r *Run) Backlogs(ctx context.Context) map[GroupKey]int64 {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	backlogs := map[GroupKey]int64{}
	r.eachGroup(func(key GroupKey, t *Topic, g *group) {
		t.mu.Lock()
		backlogger, ok := t.conn.(driver.Backlogger)
		t.mu.Unlock()
		if !ok || g.name != g.account { // nothing is kept for a subscriber
			return
		}
		if n, err := backlogger.Backlog(ctx, t.Name, g.name); err == nil {
			backlogs[key] = n
			g.queued.Store(n + 1)
		}
	})
	return backlogs
}

// noteBacklogs keeps what the brokers still have at the end of the run, to tell what is lost from what is late.
func (r *Run) noteBacklogs(ctx context.Context) {
	backlogs := r.Backlogs(ctx)
	r.eachGroup(func(key GroupKey, _ *Topic, g *group) { g.backlog.Store(uint64(max(0, backlogs[key]))) })
}

// Accounts gives the present accounting of every group.
func (r *Run) Accounts() map[GroupKey]Accounting {
	accounts := map[GroupKey]Accounting{}
	r.eachGroup(func(key GroupKey, _ *Topic, g *group) { accounts[key] = g.accounting() })
	return accounts
}

// Accounting is what became of the messages that one group should have received.
type Accounting struct {
	Group string `json:"group"` // "subscriber 1" and so on where each consumer gets every message
	track.Tally
	Lost        uint64        `json:"lost"`                // missing, and the broker has them no more
	Undelivered uint64        `json:"undelivered"`         // missing, and the broker still has as many
	Elsewhere   uint64        `json:"elsewhere,omitempty"` // of a test of several processes: missing here, and received by another process or lost
	Ranges      []track.Range `json:"ranges,omitempty"`
}

// shownRanges is how many ranges of missing messages a result names.
const shownRanges = 20

func (g *group) accounting() Accounting {
	tally := g.track.Tally()
	undelivered := min(tally.Missing, g.backlog.Load())
	a := Accounting{
		Group: g.account, Tally: tally, Undelivered: undelivered, Lost: tally.Missing - undelivered,
		Ranges: g.track.MissingRanges(shownRanges),
	}
	if g.shared { // only all processes together know
		a.Lost, a.Elsewhere = 0, a.Lost
	}
	return a
}
