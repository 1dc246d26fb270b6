package track

import (
	"maps"
	"math"
	"math/bits"
	"slices"
)

// Ledger is what one process knows of a topic, message by message, for [Merge] to put together with what other processes know.
type Ledger struct {
	Producers []ProducerLedger
	Groups    []GroupLedger
}

// ProducerLedger is what was numbered and what must arrive.
type ProducerLedger struct {
	ID       uint64
	Next     uint64 // one more than the last number
	Expected Set
}

// GroupLedger is what a group received in this process, by producer, and what it counted.
type GroupLedger struct {
	Name    string
	Tally   Tally
	Sources []SourceLedger
}

// SourceLedger is what a group received of one producer, of this process or another.
type SourceLedger struct {
	ID       uint64
	Foreign  bool     // of another process: there are no Spans
	Spans    []Bounds // what the group expects
	Received Set
	Settled  Set
	Again    Set // first copies that the broker had delivered before
	Drained  Set // read to complete the account
	Removed  Set // missing when they were removed from the broker
}

// Ledger copies what is known. It is consistent once nothing is going on.
func (t *Topic) Ledger() Ledger {
	var l Ledger
	for _, g := range t.Groups() {
		l.Groups = append(l.Groups, GroupLedger{Name: g.name, Tally: g.Tally(), Sources: g.sources()})
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(t.producers)) {
		p := t.producers[id]
		l.Producers = append(l.Producers, ProducerLedger{ID: id, Next: p.next.Load(), Expected: p.expected.snapshot()})
	}
	return l
}

func (g *Group) sources() []SourceLedger {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	sources := make([]SourceLedger, 0, len(g.deliveries))
	for _, id := range slices.Sorted(maps.Keys(g.deliveries)) {
		d := g.deliveries[id]
		d.mu.Lock()
		spans := slices.Clone(d.spans)
		d.mu.Unlock()
		sources = append(sources, SourceLedger{
			ID: id, Foreign: d.foreign, Spans: spans, Received: d.received.snapshot(), Settled: d.settled.snapshot(),
			Again: d.again.snapshot(), Drained: d.drained.snapshot(), Removed: d.removed.snapshot(),
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

// Merge puts together what several processes know of one group. The producers are those of all processes, and spans says what the
// group expects of each. A copy of a message that another process of the group has received as well is Duplicated where both
// settled it, and else Redelivered, unless the broker's own count of deliveries has made it that already. Foreign, in what comes out,
// is a number of messages of producers that no process has. The first ranges of what is missing come with it, limit of them at most.
func Merge(producers []ProducerLedger, shares []GroupLedger, spans func(id uint64) []Bounds, limit int) (Tally, []Range) {
	var t Tally
	for _, s := range shares {
		t.Duplicated += s.Tally.Duplicated
		t.Redelivered += s.Tally.Redelivered
		t.Reordered += s.Tally.Reordered
	}
	var ranges []Range
	known := map[uint64]bool{}
	for _, p := range slices.SortedFunc(slices.Values(producers), byID) {
		known[p.ID] = true
		all := gather(p.ID, shares, &t)
		expected := p.Expected.within(spans(p.ID))
		drained := all.Drained.andNot(all.Received)
		missing := expected.andNot(all.Received).andNot(drained)
		removed := missing.and(all.Removed)
		missing = missing.andNot(removed)
		t.Expected += expected.Len()
		t.Received += all.Received.Len()
		t.Drained += drained.Len()
		t.Removed += removed.Len()
		t.Settled += all.Settled.Len()
		t.Missing += missing.Len()
		ranges = missing.ranges(p.ID, ranges, limit)
	}
	for _, s := range shares {
		for _, source := range s.Sources {
			if !known[source.ID] {
				t.Foreign += source.Received.Len()
			}
		}
	}
	t.Unexpected = t.unexpected()
	return t, ranges
}

func byID(a, b ProducerLedger) int {
	if a.ID < b.ID {
		return -1
	}
	return 1
}

// gather joins what the processes received of one producer, and counts the copies that crossed.
func gather(id uint64, shares []GroupLedger, t *Tally) SourceLedger {
	var all SourceLedger
	for _, s := range shares {
		i := slices.IndexFunc(s.Sources, func(source SourceLedger) bool { return source.ID == id })
		if i < 0 {
			continue
		}
		source := s.Sources[i]
		copies := all.Received.and(source.Received)
		twice := copies.and(all.Settled).and(source.Settled)
		t.Duplicated += twice.Len()
		t.Redelivered += copies.andNot(twice).andNot(all.Again.or(source.Again)).Len()
		all.Received = all.Received.or(source.Received)
		all.Settled = all.Settled.or(source.Settled)
		all.Again = all.Again.or(source.Again)
		all.Drained = all.Drained.or(source.Drained)
		all.Removed = all.Removed.or(source.Removed)
	}
	return all
}

// ranges adds the numbers of the set to ranges of a producer.
func (s Set) ranges(id uint64, to []Range, limit int) []Range {
	for i, p := range s.pages {
		if p == nil {
			continue
		}
		for k, w := range p {
			for ; w != 0; w &= w - 1 {
				seq := uint64(i)*pageBits + uint64(k)*64 + uint64(bits.TrailingZeros64(w))
				last := len(to) - 1
				if last >= 0 && to[last].ID == id && to[last].To+1 == seq {
					to[last].To = seq
					continue
				}
				if len(to) >= limit {
					return to
				}
				to = append(to, Range{ID: id, From: seq, To: seq})
			}
		}
	}
	return to
}

// Everything is what a group expects that was there before the producer.
func Everything() []Bounds { return []Bounds{{0, math.MaxUint64}} }
