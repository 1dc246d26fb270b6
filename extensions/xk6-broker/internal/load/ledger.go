package load

import (
	"maps"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/clock"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// courseOf begins the course of a producer; nil if there is no ledger.
func (t *Topic) courseOf(id uint64) *course {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.courses == nil {
		return nil
	}
	t.courses[id] = &course{}
	return t.courses[id]
}

// note notes how far each producer has come, and when.
func (t *Topic) note() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := driver.Now()
	next := t.track.Numbered()
	for id, c := range t.courses {
		c.note(now, next[id])
	}
	return now
}

// Ledger gives the ledger of a run that has finished; nil if the run has no name.
func (r *Run) Ledger() *result.Ledger {
	if !r.named {
		return nil
	}
	l := &result.Ledger{Version: result.LedgerVersion, Run: r.ID, Instance: r.instance, Clock: clock.Machine()}
	for _, t := range r.Topics() {
		l.Topics = append(l.Topics, t.ledger())
	}
	l.Ended = driver.Now() // whatever is in it was received before
	return l
}

func (t *Topic) ledger() result.TopicLedger {
	all := t.track.Snapshot()
	t.mu.Lock()
	defer t.mu.Unlock()
	l := result.TopicLedger{
		Broker: t.Address.String(), Driver: t.Address.Driver.Name, Topic: t.Name, Producers: all.Producers, Failed: t.failed.Load(), Routed: t.routed.Load(), Unordered: t.unordered.Load(),
		Spends: t.keeping != driver.KeepsAll, Removals: slices.Clone(t.removals), Agreed: slices.Clone(t.agreed),
		Courses: make(map[uint64]result.Course, len(t.courses)),
	}
	if over := t.over.Load(); over != nil {
		l.Over = over.at
	}
	for _, p := range all.Producers {
		if c, ok := t.courses[p.ID]; ok {
			l.Courses[p.ID] = c.told(p.Next)
		}
	}
	for _, g := range t.order {
		i := slices.IndexFunc(all.Groups, func(a track.GroupSnapshot) bool { return a.Name == g.account })
		l.Groups = append(l.Groups, g.ledger(all.Groups[i]))
	}
	for _, name := range slices.Sorted(maps.Keys(t.announced)) {
		if b := t.announced[name]; b.exact() {
			l.Groups = append(l.Groups, result.GroupLedger{GroupSnapshot: track.GroupSnapshot{Name: name}, Kept: true, Asked: b.at, Backlog: b.told()})
		}
	}
	return l
}

func (g *group) ledger(known track.GroupSnapshot) result.GroupLedger {
	l := result.GroupLedger{
		GroupSnapshot: known, Subscriber: g.subscriber, Kept: g.kept, Earliest: g.earliest, Leftovers: g.leftovers, Looked: g.looked,
		Strangers: g.strangers.distinct(), Unheld: g.unheld.Load(), Again: g.again.Load(),
	}
	l.SureHeld, l.Held = g.strangers.held()
	g.mu.Lock()
	defer g.mu.Unlock()
	l.There, l.Stuck = slices.Clone(g.there), g.stuck
	if last := g.backlog.Load(); last != nil && last.exact() {
		l.Asked, l.Backlog = last.at, last.told()
	}
	return l
}
