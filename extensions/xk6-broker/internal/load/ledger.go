package load

import (
	"maps"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/clock"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

// born notes that a producer begins.
func (t *Topic) born(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.index != nil {
		t.index[id] = append(t.index[id], result.Mark{At: driver.Now(), Seen: driver.Now()})
	}
}

// began notes when a producer handed out its first number: what is ready before that is to receive all of them.
func (t *Topic) began(id uint64, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if marks := t.index[id]; len(marks) > 0 && marks[0].Next == 0 {
		marks[0].Seen = max(marks[0].Seen, at)
	}
}

// mark notes how far each producer has come, where it has moved. The topic's lock is held.
func (t *Topic) mark(now int64) {
	if t.index == nil {
		return
	}
	for id, next := range t.track.Numbered() {
		marks := t.index[id]
		if last := len(marks) - 1; last >= 0 && marks[last].Next == next {
			marks[last].Seen = now
		} else {
			t.index[id] = append(marks, result.Mark{At: now, Seen: now, Next: next})
		}
	}
}

// Ledger gives the ledger of a run that has finished; nil where the run has no name, and so no other process.
func (r *Run) Ledger() *result.Ledger {
	if !r.shared {
		return nil
	}
	l := &result.Ledger{Version: result.LedgerVersion, Run: r.ID, Instance: r.instance, Clock: clock.Machine(), Ended: driver.Now()}
	for _, t := range r.Topics() {
		l.Topics = append(l.Topics, t.ledger())
	}
	return l
}

func (t *Topic) ledger() result.TopicLedger {
	all := t.track.Ledger()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mark(driver.Now())
	l := result.TopicLedger{
		Broker: t.Address.String(), Driver: t.Address.Driver.Name, Topic: t.Name, Producers: all.Producers, Failed: t.failed.Load(), Routed: t.routed.Load(),
		Spends: t.keeping != driver.KeepsAll, Removals: slices.Clone(t.removals),
		Index: make(map[uint64][]result.Mark, len(t.index)), // a copy: whoever collects still marks
	}
	for id, marks := range t.index {
		l.Index[id] = slices.Clone(marks)
	}
	for _, g := range t.order {
		i := slices.IndexFunc(all.Groups, func(a track.GroupLedger) bool { return a.Name == g.account })
		l.Groups = append(l.Groups, g.ledger(all.Groups[i]))
	}
	for _, name := range slices.Sorted(maps.Keys(t.announced)) {
		if b := t.announced[name]; b.exact() {
			l.Groups = append(l.Groups, result.GroupLedger{GroupLedger: track.GroupLedger{Name: name}, Kept: true, Asked: b.at, Backlog: b.told()})
		}
	}
	return l
}

func (g *group) ledger(known track.GroupLedger) result.GroupLedger {
	l := result.GroupLedger{
		GroupLedger: known, Subscriber: g.subscriber, Kept: g.kept, Earliest: g.earliest, Leftovers: g.leftovers, Looked: g.looked,
		Strangers: g.strangers.distinct(), Unheld: g.unheld.Load(), Again: g.again.Load(),
	}
	l.SureHeld, l.Held = g.strangers.held()
	g.mu.Lock()
	defer g.mu.Unlock()
	l.There = slices.Clone(g.there)
	if last := g.backlog.Load(); last != nil && last.exact() {
		l.Asked, l.Backlog = last.at, last.told()
	}
	return l
}
