package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// Finish ends the run: it waits for the fate of what is in flight, makes the consumers leave, reads
// what is outstanding, and asks the brokers for their backlogs. Only the first call does anything.
func (r *Run) Finish(ctx context.Context, d Drain) error {
	r.mu.Lock()
	done := r.finished
	r.finished = true
	publishers, replies, repliers := slices.Clone(r.publishers), slices.Clone(r.replies), slices.Clone(r.repliers)
	r.mu.Unlock()
	if done {
		return nil
	}
	_ = each(ctx, d.Limit, publishers, func(ctx context.Context, p *Publisher) error { return p.proveAgain(ctx) })
	err := errors.Join(
		each(ctx, d.Limit, publishers, func(ctx context.Context, p *Publisher) error {
			return p.driver.Wrap("close producer", p.producer.Close(ctx))
		}),
		each(ctx, d.Limit, r.open(nil), func(ctx context.Context, c *Consumer) error { return c.Leave(ctx) }),
		each(ctx, d.Limit, repliers, func(ctx context.Context, by *replier) error { return by.producer.Close(ctx) }),
		each(ctx, OpenTimeout, replies, func(ctx context.Context, p *Replies) error { return p.close(ctx) }),
	)
	r.drain(ctx, r.Topics(), d)
	for _, t := range r.Topics() {
		t.askBacklogs(ctx)
	}
	return errors.Join(err, r.audit(ctx, publishers, d))
}

// auditLimit is how long a broker may take to read back what it confirmed, unless waiting is stopped.
const auditLimit = time.Minute

// audit asks the brokers of drivers that only send what they have of what they confirmed.
func (r *Run) audit(ctx context.Context, publishers []*Publisher, d Drain) error {
	limit := d.Limit
	if !r.stopped.Load() {
		limit = max(limit, auditLimit)
	}
	ctx, cancel := d.context(ctx, limit)
	defer cancel()
	return each(ctx, limit, publishers, func(ctx context.Context, p *Publisher) error { return p.audit(ctx) })
}

func (p *Publisher) audit(ctx context.Context) error {
	auditor, ok := p.producer.(driver.Auditor)
	if !ok || p.driver.Features.Start != 0 {
		return nil
	}
	is, err := auditor.Audit(ctx)
	if is.Confirmed == 0 {
		return nil
	}
	a := account.Account{Tally: account.Tally{Expected: is.Confirmed}}
	if err != nil {
		a.Missing = is.Confirmed
		a.Doubt(account.NoBacklog, is.Confirmed)
	} else {
		a.Drained, a.Missing, a.Lost = is.Confirmed-is.Missing, is.Missing, is.Missing
	}
	p.topic.mu.Lock()
	defer p.topic.mu.Unlock()
	p.topic.readBack.Group = account.ReadBack
	p.topic.readBack.Sum(a)
	if err != nil {
		return fmt.Errorf("%s: %w", p.topic.Name, p.driver.Wrap("read back", err))
	}
	return nil
}

// Remove runs a function that deletes or empties a topic. If nothing is going on, what is outstanding
// is drained first. Missing messages that were sent before are uncertain, unless the account was
// complete and nothing is sent afterwards. stays is false if the topic is deleted.
func (r *Run) Remove(ctx context.Context, t *Topic, d Drain, stays bool, remove func() error) error {
	idle := len(r.open(t)) == 0 && r.InFlight() == 0
	if idle {
		r.drain(ctx, []*Topic{t}, d)
		t.askBacklogs(ctx)
	}
	err := remove()
	switch t.Address.Driver.KindOf(err) {
	case driver.NotFound, driver.Denied, driver.Rejected, driver.Throttled, driver.Unsupported, driver.Closed: // it was not done
		return err
	}
	for _, other := range r.Topics() { // one of that name at another address may be the same
		if other.Name == t.Name && other.Address.Driver.Name == t.Address.Driver.Name {
			other.removeAll(idle && !r.shared && other == t, !stays && err == nil)
		}
	}
	return err
}

// removeAll records that the test has removed the topic's messages, and whether the account was
// complete.
func (t *Topic) removeAll(complete, deleted bool) {
	now := driver.Now()
	t.mu.Lock()
	t.removed = append(t.removed, now)
	t.settled = 0
	if complete {
		t.settled = t.track.Numbered() + 1
	}
	if deleted {
		t.created = nil
	}
	t.mu.Unlock()
	t.track.Remove(now)
	for _, g := range t.everyGroup() {
		if deleted {
			g.forget()
		}
	}
}
