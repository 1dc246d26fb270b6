package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// auditLimit is how long reading back may take at least, unless somebody wants the test to end: it is the broker's work, and nothing is waited for.
const auditLimit = time.Minute

// audit asks the brokers what they have of what they confirmed.
func (r *Run) audit(ctx context.Context, publishers []*Publisher, d Drain) error {
	limit := d.Limit
	if !r.hurries.Load() {
		limit = max(limit, auditLimit)
	}
	ctx, cancel := d.reading(ctx, limit)
	defer cancel()
	return each(ctx, limit, publishers, func(ctx context.Context, p *Publisher) error {
		err := p.audit(ctx)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("%w: reading back was given up after %v: the option drainTimeout is how long it may take, where that is longer", err, limit)
		}
		return err
	})
}

// audit asks a broker whose driver only sends what it has of what it confirmed, where it can be asked.
func (p *Publisher) audit(ctx context.Context) error {
	auditor, ok := p.producer.(driver.Auditor)
	if !ok || p.driver.Features.Start != 0 {
		return nil
	}
	said, err := auditor.Audit(ctx)
	if said.Confirmed == 0 {
		return nil
	}
	a := account.Account{Group: account.ReadBack, Tally: account.Tally{Expected: said.Confirmed}}
	if err != nil {
		a.Missing = said.Confirmed
		a.Doubt(account.NoBacklog, said.Confirmed)
	} else {
		a.Drained, a.Missing, a.Lost = said.Confirmed-said.Missing, said.Missing, said.Missing
	}
	p.topic.mu.Lock()
	defer p.topic.mu.Unlock()
	p.topic.readBack.Group = a.Group
	p.topic.readBack.Sum(a)
	if err != nil {
		return fmt.Errorf("%s: %w", p.topic.Name, p.driver.Wrap("read back", err))
	}
	return nil
}
