package account

import (
	"cmp"
	"maps"
	"slices"
)

// Snapshot is what one process knows of a topic, message by message.
type Snapshot struct {
	Producers []ProducerSnapshot
	Groups    []GroupSnapshot
}

// ProducerSnapshot is what a producer has numbered, and what must arrive.
type ProducerSnapshot struct {
	ID       uint64 `json:"id"`
	Next     uint64 `json:"next"` // one more than the last number
	Expected Set    `json:"expected,omitzero"`
	Course   Course `json:"course,omitempty"`
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
	Foreign  bool     `json:"foreign,omitempty"` // the producer is of another topic or process: there are no Spans
	Spans    []Bounds `json:"spans,omitempty"`   // what the group expects
	Received Set      `json:"received,omitzero"`
	Settled  Set      `json:"settled,omitzero"`
	Again    Set      `json:"again,omitzero"`   // of Received, those whose first copy the broker had delivered before
	Drained  Set      `json:"drained,omitzero"` // read and, if received before, settled to complete the account
}

// Snapshot copies what is known. It is consistent once nothing is going on.
func (t *Topic) Snapshot() Snapshot {
	var l Snapshot
	for _, g := range t.Groups() {
		l.Groups = append(l.Groups, GroupSnapshot{Name: g.name, Tally: g.Tally(), Sources: g.snapshots()})
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(t.producers)) {
		p := t.producers[id]
		next := p.next.Load()
		l.Producers = append(l.Producers, ProducerSnapshot{
			ID: id, Next: next, Expected: p.expected.snapshot(), Course: p.course.course(next),
		})
	}
	return l
}

func (g *Group) snapshots() []SourceSnapshot {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	all := make([]SourceSnapshot, 0, len(g.deliveries))
	for _, id := range slices.Sorted(maps.Keys(g.deliveries)) {
		d := g.deliveries[id]
		all = append(all, SourceSnapshot{
			ID: id, Foreign: d.foreign, Spans: d.expects(), Received: d.received.snapshot(),
			Settled: d.settled.snapshot(), Again: d.again.snapshot(), Drained: d.drained.snapshot(),
		})
	}
	return all
}

// source returns what the group received of a producer; nil if it neither received nor expects
// anything.
func (g *GroupSnapshot) source(id uint64) *SourceSnapshot {
	i, ok := slices.BinarySearchFunc(g.Sources, id, func(s SourceSnapshot, id uint64) int { return cmp.Compare(s.ID, id) })
	if !ok {
		return nil
	}
	return &g.Sources[i]
}
