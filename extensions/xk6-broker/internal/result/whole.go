package result

import (
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// account puts the ledgers together.
func (m *merger) account() error {
	ledgers := make([]*account.Ledger, len(m.parts))
	for i, p := range m.parts {
		ledgers[i] = p.Ledger
	}
	known := account.Known{Complete: len(m.parts) == m.processes, Apart: m.clockBounds()}
	if m.known.Backlog != nil {
		known.Backlog = func(broker, driver, topic, group string) (account.Backlog, bool, error) {
			b, known, err := m.known.Backlog(broker, driver, topic, group)
			m.askedLate = m.askedLate || known && err == nil
			return b, known, err
		}
	}
	whole, err := account.Of(ledgers, known)
	if err != nil {
		return err
	}
	m.absent = whole.Absent
	for i := range whole.Topics {
		a := &whole.Topics[i]
		k := m.find(a.Broker, a.Driver, a.Topic)
		if k < 0 {
			continue // nothing was done with it
		}
		t := &m.result.Topics[k]
		m.strangers(t, a)
		for _, g := range a.Groups {
			t.group(g.Group).Account = g
			t.group(g.Group).Kept = m.kept(a, g.Group)
		}
	}
	return nil
}

// kept says whether what a group has received and not settled comes again: not if the broker gave
// no exact count of it.
func (m *merger) kept(a *account.TopicAccount, group string) bool {
	for _, p := range m.parts {
		for _, t := range p.Ledger.Topics {
			if m.key(t.Broker, t.Driver, t.Topic) == m.key(a.Broker, a.Driver, a.Topic) &&
				slices.ContainsFunc(t.Groups, func(g account.GroupLedger) bool { return g.Name == group && g.Kept && g.Asked > 0 }) {
				return true
			}
		}
	}
	return false
}

// clockBounds returns by how much the clocks of two processes may differ at most.
func (m *merger) clockBounds() func(a, b *account.Ledger) time.Duration {
	of := map[*account.Ledger]*Result{}
	for _, p := range m.parts {
		of[p.Ledger] = p.Result
	}
	return func(a, b *account.Ledger) time.Duration {
		if c, ok := ahead(of[a], of[b]); ok {
			return time.Duration(c.apart())
		}
		return ClockSkew
	}
}

// strangers counts what the topic's groups received of other processes' producers that are none of
// the topic's. Each process has counted its own.
func (m *merger) strangers(t *Topic, a *account.TopicAccount) {
	delete(t.Counts, recording.Sibling.String()) // they are siblings no more
	for counter, n := range map[recording.Counter]uint64{recording.Sibling: a.Absent, recording.Routed: a.Routed, recording.Aliased: a.Aliased} {
		if n > 0 {
			t.Counts[counter.String()] += int64(n) //gosec:disable G115 -- a count, far below the limit
		}
	}
	if a.Absent > 0 {
		return
	}
	for _, w := range t.Phases {
		delete(w.Counts, recording.Sibling.String())
	}
	for _, p := range t.History {
		delete(p.Counts, recording.Sibling.String())
	}
	// Those that were sent long before the receiving process began were of this test all the same.
	t.Before = t.Counts[recording.Earlier.String()]
	delete(t.Counts, recording.Earlier.String())
}
