package track

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Snapshot is what one process knows of a topic, message by message, for [Merge] to put together with what other processes know.
type Snapshot struct {
	Producers []ProducerSnapshot
	Groups    []GroupSnapshot
}

// ProducerSnapshot is what was numbered and what must arrive.
type ProducerSnapshot struct {
	ID       uint64
	Next     uint64 // one more than the last number
	Expected Numbers
}

// GroupSnapshot is what a group received in this process, by producer, and what it counted.
type GroupSnapshot struct {
	Name    string
	Tally   Tally
	Sources []SourceSnapshot // ascending

	// Unfinished tells that the process was killed: what it had received and not settled is received by nobody, until it comes again.
	Unfinished bool
}

// SourceSnapshot is what a group received of one producer, of this process or another.
type SourceSnapshot struct {
	ID       uint64
	Foreign  bool     // of another process: there are no Spans
	Spans    []Bounds // what the group expects
	Received Numbers
	Settled  Numbers
	Again    Numbers // first copies that the broker had delivered before
	Drained  Numbers // read to complete the account
	Doubted  Numbers // the broker may be done with them although nobody settled them
}

// Snapshot copies what is known. It is consistent once nothing is going on.
func (t *Topic) Snapshot() Snapshot {
	var l Snapshot
	for _, g := range t.Groups() {
		l.Groups = append(l.Groups, GroupSnapshot{Name: g.name, Tally: g.Tally(), Sources: g.sources()})
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(t.producers)) {
		p := t.producers[id]
		l.Producers = append(l.Producers, ProducerSnapshot{ID: id, Next: p.next.Load(), Expected: p.expected.snapshot()})
	}
	return l
}

func (g *Group) sources() []SourceSnapshot {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	sources := make([]SourceSnapshot, 0, len(g.deliveries))
	for _, id := range slices.Sorted(maps.Keys(g.deliveries)) {
		d := g.deliveries[id]
		d.mu.Lock()
		spans, own := slices.Clone(d.spans), slices.Clone(d.own())
		d.mu.Unlock()
		received, settled := d.received.snapshot(), d.settled.snapshot()
		if d.past != nil {
			if !d.foreign { // where it is, what the group expects is known to the whole test only
				received = received.Within(own)
			}
			received, settled = received.Or(d.past.received.snapshot()), settled.Or(d.past.settled.snapshot())
			received.bitmap.RunOptimize() // what is not in its smallest form [ReadSet] refuses
			settled.bitmap.RunOptimize()
		}
		sources = append(sources, SourceSnapshot{
			ID: id, Foreign: d.foreign, Spans: spans, Received: received, Settled: settled,
			Again: d.again.snapshot(), Drained: d.drained.snapshot(), Doubted: d.doubted.snapshot(),
		})
	}
	return sources
}

// Numbered gives how many messages each producer of this process has numbered.
func (t *Topic) Numbered() map[uint64]uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	next := make(map[uint64]uint64, len(t.producers))
	for id, p := range t.producers {
		next[id] = p.next.Load()
	}
	return next
}

// Terms are what is to be known of a producer, besides its snapshot, to account for its messages in a group.
type Terms struct {
	Spans    []Bounds // what the group may expect of it
	Certain  []Bounds // and of that, what it does expect
	Untold   []Bounds // what may have come to a process that was killed, after it had told
	Given             // of the broker's last word on what it has for the group
	Removals []Given  // of what it had before each time that the topic's messages were removed on purpose
	Late     []Bounds // what was numbered when all of the group had left for good
}

// Given is about what a broker has for a group at a time: every message numbered below Sure that it had been given and that nobody had settled, and none
// numbered from Possible on.
type Given struct{ Sure, Possible uint64 }

// Whole is what several processes know of one group together.
type Whole struct {
	Tally
	Ranges   []Range // of what is missing, the first
	Given            // of what is missing, how many are numbered below the producer's Possible, and of those not doubted below its Sure
	Doubted  uint64  // of what is missing, how many the group may never have been there for, without those that are untold
	Untold   uint64  // of what did not arrive, how many may have come to a process that was killed, after it had told
	Removals []Given // likewise, for each removal, of what did not arrive and may have been removed
	Held     uint64  // received and not settled, of whatever producer
	Late     uint64  // of what is not expected and did not come, what was numbered when all of the group had left for good
	SureHeld uint64  // of these, those that the broker must still have, see [Held]
}

// Merge puts together what several processes know of one group. The producers are those of all processes, and terms says what else is
// known of each. A copy of a message that another process of the group has received as well is Duplicated where both settled it, and
// else Redelivered, unless the broker's own count of deliveries has made it that already; so is one that a process had received and not settled when it was
// killed, which counts as received only where it came again. Removed is what did not arrive and was perhaps numbered before
// one of the removals. What the group may only expect is expected. Foreign, in what comes out, is a number of
// messages of producers that no process has. The first ranges of what is missing come with it, limit of them at most. Only the sets of one producer
// are loaded at a time; the error is of that.
func Merge(producers []ProducerSnapshot, shares []GroupSnapshot, terms func(id uint64) Terms, limit int) (Whole, error) {
	var w Whole
	shares = slices.SortedStableFunc(slices.Values(shares), killedLast)
	for _, s := range shares {
		w.Duplicated += s.Tally.Duplicated
		w.Redelivered += s.Tally.Redelivered
		w.Reordered += s.Tally.Reordered
	}
	known := map[uint64]bool{}
	for _, p := range slices.SortedFunc(slices.Values(producers), byID) {
		known[p.ID] = true
		all, err := gather(p.ID, shares, &w.Tally)
		if err != nil {
			return w, err
		}
		expected, err := Load(p.Expected)
		if err != nil {
			return w, err
		}
		w.add(p.ID, expected, all, terms(p.ID), limit)
	}
	for _, id := range sources(shares) {
		if !known[id] {
			all, err := gather(id, shares, &w.Tally)
			if err != nil {
				return w, err
			}
			w.Foreign += all.received.Len()
			w.hold(all)
		}
	}
	w.Unexpected = w.unexpected()
	return w, nil
}

// add accounts for the messages of one producer.
func (w *Whole) add(id uint64, expected Set, all joined, terms Terms, limit int) {
	late := expected.Within(terms.Late)
	expected = expected.Within(terms.Spans)
	w.Late += late.andNot(expected).andNot(all.received).andNot(all.drained).Len()
	drained := all.drained.Within(terms.Spans).andNot(all.received)
	missing := expected.andNot(all.received).andNot(drained)
	certain, untold := missing.Within(terms.Certain), missing.Within(terms.Untold)
	var last uint64
	for i, r := range terms.Removals {
		if len(w.Removals) <= i {
			w.Removals = append(w.Removals, Given{})
		}
		w.Removals[i].Sure += certain.below(r.Sure).Len()
		w.Removals[i].Possible += missing.below(r.Possible).Len()
		last = max(last, r.Possible)
	}
	removed := missing.below(last)
	missing, certain = missing.andNot(removed), certain.andNot(removed)
	w.Expected += expected.Len()
	w.Received += all.received.Len()
	w.Drained += drained.Len()
	w.Removed += removed.Len()
	w.Settled += all.settled.Len()
	w.Missing += missing.Len()
	w.Doubted += missing.andNot(certain).andNot(untold).Len()
	w.Untold += untold.Len()
	w.Sure += certain.below(terms.Sure).Len()
	w.Possible += missing.below(terms.Possible).Len()
	w.hold(all)
	w.Ranges = missing.ranges(id, w.Ranges, limit)
}

func (w *Whole) hold(all joined) {
	held := all.received.andNot(all.settled)
	w.Held += held.Len()
	w.SureHeld += held.andNot(all.doubted).Len()
}

// sources lists the producers of which somebody received something, ascending.
func sources(shares []GroupSnapshot) []uint64 {
	var ids []uint64
	for _, s := range shares {
		for i := range s.Sources {
			ids = append(ids, s.Sources[i].ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// killedLast has the processes that were killed follow the others, so that what they had is looked for in what all others received.
func killedLast(a, b GroupSnapshot) int {
	switch {
	case a.Unfinished == b.Unfinished:
		return 0
	case a.Unfinished:
		return 1
	}
	return -1
}

func byID(a, b ProducerSnapshot) int { return cmp.Compare(a.ID, b.ID) }

// Source finds what the group received of a producer; nil where it received nothing and expects nothing.
func (g *GroupSnapshot) Source(id uint64) *SourceSnapshot {
	i, ok := slices.BinarySearchFunc(g.Sources, id, func(s SourceSnapshot, id uint64) int { return cmp.Compare(s.ID, id) })
	if !ok {
		return nil
	}
	return &g.Sources[i]
}

// joined is what a group received of one producer, loaded.
type joined struct{ received, settled, again, drained, doubted Set }

func (l *SourceSnapshot) load() (s joined, err error) {
	for to, from := range map[*Set]Numbers{
		&s.received: l.Received, &s.settled: l.Settled, &s.again: l.Again, &s.drained: l.Drained, &s.doubted: l.Doubted,
	} {
		if *to, err = Load(from); err != nil {
			return s, err
		}
	}
	return s, nil
}

// gather joins what the processes received of one producer, and counts the copies that crossed.
func gather(id uint64, shares []GroupSnapshot, t *Tally) (all joined, err error) {
	for i := range shares {
		snapshot := shares[i].Source(id)
		if snapshot == nil {
			continue
		}
		from, err := snapshot.load()
		if err != nil {
			return all, err
		}
		copies := all.received.and(from.received)
		twice := copies.and(all.settled).and(from.settled)
		t.Duplicated += twice.Len()
		t.Redelivered += copies.andNot(twice).andNot(all.again.Or(from.again)).Len()
		if shares[i].Unfinished {
			all.received = all.received.Or(from.received.and(from.settled))
		} else {
			all.received = all.received.Or(from.received)
		}
		all.settled = all.settled.Or(from.settled)
		all.again = all.again.Or(from.again)
		all.drained = all.drained.Or(from.drained)
		all.doubted = all.doubted.Or(from.doubted).Or(copies)
	}
	return all, nil
}

// Everything is what a group expects that was there before the producer.
func Everything() []Bounds { return []Bounds{{0, math.MaxUint64}} }
