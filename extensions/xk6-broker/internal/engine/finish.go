package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// Finish ends the run: it waits for the fate of what is in flight, lets the consumers leave that are still there, reads what is
// outstanding, and asks the brokers what they have. Connections stay the caller's. Only the first call does anything.
func (r *Run) Finish(ctx context.Context, d Drain) error {
	r.mu.Lock()
	done := r.finished
	r.finished = true
	publishers, replies, repliers := slices.Clone(r.publishers), slices.Clone(r.replies), slices.Clone(r.repliers)
	r.mu.Unlock()
	if done {
		return nil
	}
	r.proveAgain(ctx, publishers, min(d.Limit, backlogTimeout)) // their connections are still open
	proven := make(chan struct{})
	go func() {
		r.proving.Wait()
		close(proven)
	}()
	select {
	case <-proven:
	case <-ctx.Done():
	}
	errs := each(ctx, d.Limit, publishers, func(ctx context.Context, p *Publisher) error {
		return p.driver.Wrap("close producer", p.producer.Close(ctx))
	})
	errs = errors.Join(errs, each(ctx, d.Limit, r.open(nil), func(ctx context.Context, c *Consumer) error { return c.Leave(ctx) }))
	errs = errors.Join(errs, each(ctx, d.Limit, repliers, func(ctx context.Context, by *replier) error { return by.producer.Close(ctx) }))
	errs = errors.Join(errs, each(ctx, d.Limit+OpenTimeout, replies, func(ctx context.Context, p *Replies) error { return p.close(ctx, d) }))
	r.drain(ctx, r.Topics(), d)
	r.noteBacklogs(ctx, r.Topics())
	return errors.Join(errs, r.audit(ctx, publishers, d))
}

func (r *Run) proveAgain(ctx context.Context, publishers []*Publisher, limit time.Duration) {
	now := driver.Now()
	_ = each(ctx, limit, publishers, func(ctx context.Context, p *Publisher) error {
		p.proveAgain(ctx, now)
		return nil
	})
}

// open lists the consumers that are open, of one topic or of all.
func (r *Run) open(t *Topic) []*Consumer {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*Consumer
	for c := range r.readers {
		if t == nil || c.topic == t {
			all = append(all, c)
		}
	}
	return all
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

// GroupKey names a group of consumers of a run.
type GroupKey struct{ Broker, Driver, Topic, Group string }

// backlogTimeout bounds a question to a broker.
const backlogTimeout = 5 * time.Second

// Backlogs asks the brokers how many messages each group has not settled. Brokers that cannot tell, or do not answer, are left out.
func (r *Run) Backlogs(ctx context.Context) map[GroupKey]int64 {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	backlogs := map[GroupKey]int64{}
	for _, t := range r.Topics() {
		for _, g := range t.everyGroup() {
			if b := g.ask(ctx); b.known {
				backlogs[GroupKey{t.Address.String(), t.Address.Driver.Name, t.Name, g.account}] = b.Messages
				g.queued.Store(b.Messages + 1)
			}
		}
	}
	return backlogs
}

// noteBacklogs keeps what the brokers still have at the end, to tell what is lost from what is late. Of a group that only other processes
// have members of, they may have asked too early: the last process to end may have none.
func (r *Run) noteBacklogs(ctx context.Context, topics []*Topic) {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	for _, t := range topics {
		t.mu.Lock()
		closed := t.closed()
		t.mu.Unlock()
		if closed {
			continue // it was asked before the topic was removed
		}
		for _, g := range t.everyGroup() {
			b := g.ask(ctx)
			g.backlog.Store(&b)
			g.queued.Store(0)
			if b.known {
				g.queued.Store(b.Messages + 1)
			}
		}
		for _, name := range t.absent() {
			b := t.ask(ctx, name)
			t.mu.Lock()
			t.announced[name] = b
			t.mu.Unlock()
		}
	}
}

// absent lists the groups of the test that this process had no member of.
func (t *Topic) absent() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.announced {
		if t.groups[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// Counts gives the counts of every group so far, without the fates of what is missing: those are in the result.
func (r *Run) Counts() map[GroupKey]account.Account {
	counts := map[GroupKey]account.Account{}
	for _, t := range r.Topics() {
		for name, a := range t.counts() {
			counts[GroupKey{t.Address.String(), t.Address.Driver.Name, t.Name, name}] = a
		}
	}
	return counts
}
