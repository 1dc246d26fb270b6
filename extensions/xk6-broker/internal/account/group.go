package account

import (
	"sync/atomic"
)

// Since is from where a group expects messages.
type Since uint8

// Sinces.
const (
	New      Since = iota // what is numbered after the group became ready
	Earliest              // everything, from each producer's message 0 or, where the topic's were removed, from the first after that
)

// Group expects every message once. It is safe for concurrent use.
type Group struct {
	topic      *Topic
	name       string
	deliveries map[uint64]*delivery // by producer; guarded by the topic's lock, as is open
	open       bool                 // it expects what is numbered now
	adopted    int                  // how many of the deliveries are of other processes' producers

	duplicated, redelivered, reordered, foreign atomic.Uint64
}

// Name is what the group was made with.
func (g *Group) Name() string { return g.name }

// watch begins to account for the messages of a producer. The topic's lock is held.
func (g *Group) watch(p *Producer) {
	d := &delivery{producer: p}
	if g.open {
		d.open(p.removed.Load())
	}
	g.deliveries[p.id] = d
}

// What a group remembers of other topics and processes is bounded, for nothing tells that a number
// was handed out there: so many producers, and so many messages of each, which take 64 MiB of empty
// pages at worst.
const (
	maxForeignProducers = 1 << 16
	maxForeignMessages  = 1 << 36
)

// adopt begins to remember the messages of a producer of another topic or process.
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
	g.deliveries[id] = d
	return d, true
}

// Ready tells that the group is consuming: one that is since [New] expects, from now on, what is
// numbered from now on. It does nothing to a group that is consuming already, as one since
// [Earliest] is from the start.
func (g *Group) Ready() {
	g.topic.mu.Lock()
	defer g.topic.mu.Unlock()
	if g.open {
		return
	}
	g.open = true
	for _, d := range g.deliveries {
		if !d.foreign {
			d.open(d.producer.next.Load())
		}
	}
}

// Close tells that the group has stopped consuming, ahead of the producers: it expects what was
// numbered so far and nothing more, until it is ready again. That is for a subscriber that leaves
// where messages are not kept for it. A group that consumes to the end, or whose messages wait for
// it, needs no Close.
func (g *Group) Close() {
	g.topic.mu.Lock()
	defer g.topic.mu.Unlock()
	if !g.open {
		return
	}
	g.open = false
	for _, d := range g.deliveries {
		if !d.foreign {
			d.close(d.producer.next.Load())
		}
	}
}

// Remove tells that the test has removed from the broker what is numbered so far: what has not
// arrived is outstanding no more. What is held now may have been removed too.
func (g *Group) Remove() {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	for _, d := range g.deliveries {
		d.doubt()
		if !d.foreign {
			d.remove(d.producer.next.Load())
		}
	}
}

// Tally is what has become of a group's messages. Each is a number of messages.
type Tally struct {
	Expected    uint64 `json:"expected"`    // must arrive
	Received    uint64 `json:"received"`    // arrived at a consumer of the test, whatever the number of copies
	Drained     uint64 `json:"drained"`     // arrived only when what was left was read to complete the account
	Missing     uint64 `json:"missing"`     // expected, and neither of these
	Unexpected  uint64 `json:"unexpected"`  // arrived and not, or not yet, expected
	Settled     uint64 `json:"settled"`     // settled, whatever the number of copies
	Duplicated  uint64 `json:"duplicated"`  // copies of messages that were settled already
	Redelivered uint64 `json:"redelivered"` // copies that were delivered again, see Reception
	Reordered   uint64 `json:"reordered"`   // first copies that a later message of the producer and partition overtook
	Foreign     uint64 `json:"foreign"`     // copies of messages that no producer of the topic has numbered
}

// Tally counts. It is exact once nothing is going on, and takes a few nanoseconds for every 8192
// messages numbered plus what has changed since it was last called. At all times Expected - Missing
// + Unexpected = Received + Drained.
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
		t.Drained += c.drained
		t.Missing += c.missing
		t.Settled += d.settled.count()
	}
	t.Unexpected = t.unexpected()
	return t
}

// Add adds what became of another group's messages.
func (t *Tally) Add(o Tally) {
	t.Expected += o.Expected
	t.Received += o.Received
	t.Drained += o.Drained
	t.Missing += o.Missing
	t.Unexpected += o.Unexpected
	t.Settled += o.Settled
	t.Duplicated += o.Duplicated
	t.Redelivered += o.Redelivered
	t.Reordered += o.Reordered
	t.Foreign += o.Foreign
}

func (t *Tally) unexpected() uint64 {
	return t.Received + t.Drained + t.Missing - t.Expected
}

// Held is what a group has received and not settled. Each is a number of messages.
type Held struct {
	Own  uint64 // of the topic's own producers
	All  uint64 // of whatever producer
	Sure uint64 // of All, those that the broker must still have: delivered once, and not given back
}

// Held counts what the group has received and not settled.
func (g *Group) Held() (h Held) {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	for _, d := range g.deliveries {
		sure, all := d.held()
		h.Sure += sure
		h.All += all
		if !d.foreign {
			h.Own += all
		}
	}
	return h
}

// Siblings is how many different messages of other topics' and processes' producers the group has
// received.
func (g *Group) Siblings() (n uint64) {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	for _, d := range g.deliveries {
		if d.foreign {
			n += d.received.count()
		}
	}
	return n
}

// Outstanding is how many messages are expected, have not arrived and were not removed by the test.
// It is cheap enough to ask for every few milliseconds.
func (g *Group) Outstanding() uint64 {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	var n uint64
	for _, d := range g.deliveries {
		if !d.foreign {
			n += d.count().outstanding
		}
	}
	return n
}
