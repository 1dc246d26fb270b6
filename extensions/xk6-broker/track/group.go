package track

import (
	"maps"
	"math"
	"slices"
	"sync/atomic"
)

// Since is from where a group expects messages.
type Since uint8

// Sinces.
const (
	New      Since = iota // what is numbered after the group became ready
	Earliest              // everything, from each producer's message 0
)

// Group expects every message once. It is safe for concurrent use.
type Group struct {
	topic      *Topic
	name       string
	deliveries map[uint64]*delivery // by producer; guarded by the topic's lock, as are ready and closed
	ready      bool
	closed     bool
	adopted    int // how many of the deliveries are of other processes' producers

	duplicated, redelivered, reordered, foreign atomic.Uint64
}

// Name is what the group was made with.
func (g *Group) Name() string { return g.name }

// watch begins to account for the messages of a producer. The topic's lock is held.
func (g *Group) watch(p *Producer) {
	d := &delivery{producer: p}
	d.until.Store(math.MaxUint64)
	if !g.ready {
		d.from.Store(math.MaxUint64)
	}
	if g.closed {
		d.until.Store(p.next.Load())
	}
	g.deliveries[p.id] = d
}

// What a group remembers of other processes is bounded, for nothing tells that a number was handed out there: so many producers, and
// so many messages of each, which take 64 MiB of empty pages at worst.
const (
	maxForeignProducers = 1 << 16
	maxForeignMessages  = 1 << 36
)

// adopt begins to account for the messages of another process's producer.
func (g *Group) adopt(id uint64) (*delivery, bool) {
	g.topic.mu.Lock()
	defer g.topic.mu.Unlock()
	if d, ok := g.deliveries[id]; ok {
		return d, true
	}
	if g.adopted == maxForeignProducers {
		return nil, false
	}
	g.adopted++
	p := &Producer{id: id}
	p.next.Store(maxForeignMessages)
	d := &delivery{producer: p, foreign: true}
	d.from.Store(math.MaxUint64)
	g.deliveries[id] = d
	return d, true
}

// Ready tells that the group is consuming: one that is since [New] expects, from now on, what is numbered from now on.
// Only the first call counts, and where a group is since [Earliest] none is needed.
func (g *Group) Ready() {
	g.topic.mu.Lock()
	defer g.topic.mu.Unlock()
	if g.ready || g.closed {
		return
	}
	g.ready = true
	for _, d := range g.deliveries {
		if d.foreign {
			continue
		}
		d.from.Store(d.producer.next.Load())
	}
}

// Close tells that the group stops consuming for good, ahead of the producers: it expects what was numbered so far and
// nothing more. That is for a subscriber that leaves where messages are not kept for it, and it should have read what
// was on its way before. A group that consumes to the end needs no Close.
func (g *Group) Close() {
	g.topic.mu.Lock()
	defer g.topic.mu.Unlock()
	if g.closed {
		return
	}
	g.closed = true
	for _, d := range g.deliveries {
		d.until.Store(d.producer.next.Load())
	}
}

// Tally is what has become of a group's messages. Each is a number of messages.
type Tally struct {
	Expected    uint64 `json:"expected"`    // must arrive
	Received    uint64 `json:"received"`    // arrived, whatever the number of copies
	Missing     uint64 `json:"missing"`     // expected and not received
	Unexpected  uint64 `json:"unexpected"`  // received and not, or not yet, expected
	Settled     uint64 `json:"settled"`     // settled, whatever the number of copies
	Duplicated  uint64 `json:"duplicated"`  // copies of messages that were settled already
	Redelivered uint64 `json:"redelivered"` // copies that were delivered again, see Verdict
	Reordered   uint64 `json:"reordered"`   // first copies that a later message of the producer and partition overtook
	Foreign     uint64 `json:"foreign"`     // copies of messages that no producer of the topic has numbered
}

// Tally counts. It is exact once nothing is going on, and takes a few nanoseconds for every 8192 messages numbered plus
// what has changed since it was last called. At all times Expected - Missing + Unexpected = Received.
func (g *Group) Tally() Tally {
	t := Tally{
		Duplicated:  g.duplicated.Load(),
		Redelivered: g.redelivered.Load(),
		Reordered:   g.reordered.Load(),
		Foreign:     g.foreign.Load(),
	}
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	for _, d := range g.deliveries {
		if d.foreign {
			continue
		}
		c := d.count()
		t.Expected += c.expected
		t.Received += c.received
		t.Missing += c.missing
		t.Settled += d.settled.count()
	}
	t.Unexpected = t.Received + t.Missing - t.Expected
	return t
}

// Outstanding is how many messages are expected and have not been received. It is Tally's Missing, and cheap enough to
// ask for every few milliseconds.
func (g *Group) Outstanding() uint64 {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	var missing uint64
	for _, d := range g.deliveries {
		if d.foreign {
			continue
		}
		missing += d.count().missing
	}
	return missing
}

// Range is consecutive messages of one producer.
type Range struct {
	ID   uint64 `json:"id"`   // the producer
	From uint64 `json:"from"` // the first
	To   uint64 `json:"to"`   // the last, which is in the range
}

// MissingRanges gives the first ranges of messages that are expected and have not been received, by producer and
// number, limit of them at most.
func (g *Group) MissingRanges(limit int) []Range {
	var ranges []Range
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(g.deliveries)) {
		d := g.deliveries[id]
		if d.foreign {
			continue
		}
		for seq := range d.missing {
			last := len(ranges) - 1
			if last >= 0 && ranges[last].ID == id && ranges[last].To+1 == seq {
				ranges[last].To = seq
				continue
			}
			if len(ranges) >= limit {
				return ranges
			}
			ranges = append(ranges, Range{ID: id, From: seq, To: seq})
		}
	}
	return ranges
}
