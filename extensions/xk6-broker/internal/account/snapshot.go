package account

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Snapshot is what one process knows of a topic, message by message.
type Snapshot struct {
	Producers []ProducerSnapshot
	Groups    []GroupSnapshot
}

// ProducerSnapshot is what was numbered and what must arrive.
type ProducerSnapshot struct {
	ID       uint64 `json:"id"`
	Next     uint64 `json:"next"` // one more than the last number
	Expected Set    `json:"expected,omitzero"`
}

// GroupSnapshot is what a group received in this process, by producer, and what it counted.
type GroupSnapshot struct {
	Name    string           `json:"name"`
	Tally   Tally            `json:"tally"`
	Sources []SourceSnapshot `json:"sources"` // ascending
}

// SourceSnapshot is what a group received of one producer, of this process or another.
type SourceSnapshot struct {
	ID       uint64   `json:"id"`
	Foreign  bool     `json:"foreign,omitempty"` // of another topic or process: there are no Spans
	Spans    []Bounds `json:"spans,omitempty"`   // what the group expects
	Received Set      `json:"received,omitzero"`
	Settled  Set      `json:"settled,omitzero"`
	Again    Set      `json:"again,omitzero"`   // first copies that the broker had delivered before
	Drained  Set      `json:"drained,omitzero"` // read to complete the account
	Doubted  Set      `json:"doubted,omitzero"` // the broker may be done with them although nobody settled them
	Cleared  Set      `json:"cleared,omitzero"` // received, and settled when they were read again to complete the account
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
		spans := slices.Clone(d.spans)
		d.mu.Unlock()
		sources = append(sources, SourceSnapshot{
			ID: id, Foreign: d.foreign, Spans: spans, Received: d.received.snapshot(), Settled: d.settled.snapshot(),
			Again: d.again.snapshot(), Drained: d.drained.snapshot(), Doubted: d.doubted.snapshot(), Cleared: d.cleared.snapshot(),
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

// Source finds what the group received of a producer; nil where it received nothing and expects
// nothing.
func (g *GroupSnapshot) Source(id uint64) *SourceSnapshot {
	i, ok := slices.BinarySearchFunc(g.Sources, id, func(s SourceSnapshot, id uint64) int { return cmp.Compare(s.ID, id) })
	if !ok {
		return nil
	}
	return &g.Sources[i]
}

// Everything is what a group expects that was there before the producer.
func Everything() []Bounds { return []Bounds{{0, math.MaxUint64}} }
