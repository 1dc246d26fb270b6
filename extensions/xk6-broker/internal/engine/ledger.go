package engine

import (
	"maps"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/machine"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// courseOf begins a producer's course.
func (t *Topic) courseOf(id uint64) *account.Recorder {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.courses[id] = &account.Recorder{}
	return t.courses[id]
}

// note notes how far each producer has come, and when.
func (t *Topic) note() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := driver.Now()
	next := t.track.Numbered()
	for id, c := range t.courses {
		c.Note(now, next[id])
	}
	return now
}

// Named says whether the run was given a name, by which other processes may take part in it.
func (r *Run) Named() bool { return r.named }

// Ledger gives the run's ledger. It is complete once the run has finished.
func (r *Run) Ledger() *account.Ledger {
	l := &account.Ledger{Version: account.LedgerVersion, Run: r.ID, Instance: r.instance, Clock: machine.Machine()}
	for _, t := range r.Topics() {
		if of := r.ledger(t); len(of.Producers)+len(of.Groups)+len(of.Removed) > 0 { // a script may describe a topic that it does not use
			l.Topics = append(l.Topics, of)
		}
	}
	l.Ended = driver.Now() // whatever is in it was received before
	return l
}

func (r *Run) ledger(t *Topic) account.TopicLedger {
	all, slowest := t.track.Snapshot(), r.slowest(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	l := account.TopicLedger{
		Broker: t.Address.String(), Driver: t.Address.Driver.Name, Topic: t.Name, Producers: all.Producers, Slowest: slowest,
		Failed: t.failed.Load(), Unanswered: uint64(t.unanswered.Load()), Selected: t.routed.Load(), Unordered: t.unordered.Load(), //gosec:disable G115 -- a count
		Spends: !t.Address.Driver.Features.Replay || t.spends.Load(), Courses: make(map[uint64]account.Course, len(t.courses)),
	}
	if !t.closed() {
		l.Removed = slices.Clone(t.removed)
	}
	for _, p := range all.Producers {
		if c, ok := t.courses[p.ID]; ok {
			l.Courses[p.ID] = c.Course(p.Next)
		}
	}
	for _, g := range t.order {
		i := slices.IndexFunc(all.Groups, func(a account.GroupSnapshot) bool { return a.Name == g.account })
		l.Groups = append(l.Groups, g.ledger(all.Groups[i]))
	}
	for _, name := range slices.Sorted(maps.Keys(t.announced)) {
		if b := t.announced[name]; b.exact() {
			l.Groups = append(l.Groups, account.GroupLedger{GroupSnapshot: account.GroupSnapshot{Name: name}, Kept: true, Asked: b.at, Backlog: b.told()})
		}
	}
	return l
}

// slowest is the longest that a send or request of the topic took, in ns.
func (r *Run) slowest(t *Topic) (longest int64) {
	for _, s := range r.All() {
		if s.Broker != t.Address.String() || s.Topic != t.Name {
			continue
		}
		m := s.Measured()
		for l := range recording.Loop(recording.NumLoops) {
			for _, trend := range []recording.Trend{recording.PublishTime, recording.RequestTime} {
				if h := m.Trends[l][trend]; h != nil {
					longest = max(longest, h.Max())
				}
			}
		}
	}
	return longest
}

func (g *group) ledger(known account.GroupSnapshot) account.GroupLedger {
	l := account.GroupLedger{
		GroupSnapshot: known, Subscriber: g.subscriber, Kept: g.kept, Earliest: g.earliest, Leftovers: g.leftovers, Strangers: g.strangers.distinct(),
	}
	l.SureHeld, l.Held = g.strangers.held()
	l.Held += max(0, g.unanswered.Load())
	g.mu.Lock()
	defer g.mu.Unlock()
	l.There, l.Partings, l.Cut = slices.Clone(g.there), slices.Clone(g.partings), g.cut
	if last := g.backlog.Load(); last != nil && last.exact() {
		l.Asked, l.Backlog = last.at, last.told()
	}
	return l
}
