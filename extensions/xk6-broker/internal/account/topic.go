// Package account accounts for every message of a test: expected, received, lost, duplicated,
// redelivered, reordered, or uncertain. It is exact, and knows no driver and no clock.
//
// A [Topic] has producers, which number their messages 0, 1, 2, ..., and groups, each of which
// expects every message once. [Topic.Snapshot] makes the ledger of a process, [Compute] the
// accounts of a test from the ledgers of its processes.
package account

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Topic is the accounting of one topic in one process. It is safe for concurrent use.
type Topic struct {
	mu        sync.RWMutex
	producers map[uint64]*Producer
	groups    map[string]*Group
}

// NewTopic begins the accounting of a topic.
func NewTopic() *Topic {
	return &Topic{producers: map[uint64]*Producer{}, groups: map[string]*Group{}}
}

// Producer is a source of numbered messages. It is safe for concurrent use.
type Producer struct {
	id       uint64
	expected bitmap
	course   recorder
	seen     atomic.Uint64 // what next was at the last look
	removed  atomic.Uint64 // messages below were removed from the broker by the test
	_        [64]byte
	next     atomic.Uint64 // on a cache line of its own, because each message changes it
	_        [64]byte
}

// Producer returns the producer of an ID, which must be unique in the test.
func (t *Topic) Producer(id uint64) *Producer {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.producers[id]
	if !ok {
		p = &Producer{id: id}
		t.producers[id] = p
		for _, g := range t.groups {
			g.watch(p)
		}
	}
	return p
}

// ID returns the identity of the producer in its messages.
func (p *Producer) ID() uint64 { return p.id }

// Next hands out the number of the next message.
func (p *Producer) Next() uint64 { return p.next.Add(1) - 1 }

// NextN hands out n consecutive numbers and returns the first.
func (p *Producer) NextN(n int) uint64 {
	return p.next.Add(uint64(n)) - uint64(n) //gosec:disable G115 -- a count
}

// Sent records when numbers from first on were handed out, in ns since the Unix epoch. One
// goroutine at a time may call it.
func (p *Producer) Sent(at int64, first uint64) { p.course.sent(at, first) }

// Expect records that a message must arrive: the broker has confirmed it or, if it confirms
// nothing, it was sent. It panics on a number that Next has not handed out.
func (p *Producer) Expect(seq uint64) { p.ExpectN(seq, 1) }

// ExpectN does for n consecutive messages as [Producer.Expect] does for one.
func (p *Producer) ExpectN(first uint64, n int) {
	if n <= 0 {
		return
	}
	last := first + uint64(n) - 1
	if !p.numbered(last) {
		panic(fmt.Sprintf("account: message %d of producer %d is expected, but was not numbered", last, p.id))
	}
	if n == 1 {
		p.expected.set(first)
		return
	}
	p.expected.setRange(first, uint64(n))
}

// numbered reports whether Next has handed out seq.
func (p *Producer) numbered(seq uint64) bool {
	if seq < p.seen.Load() {
		return true
	}
	next := p.next.Load()
	p.seen.Store(next) // if this is late, seen is too low, which costs another look
	return seq < next
}

// Group returns the group of a name. since applies to a new one. The name is that of a consumer
// group or, if every subscriber gets every message, of one subscriber.
func (t *Topic) Group(name string, since Since) *Group {
	t.mu.Lock()
	defer t.mu.Unlock()
	g, ok := t.groups[name]
	if !ok {
		g = &Group{topic: t, name: name, open: since == Earliest, deliveries: map[uint64]*delivery{}}
		t.groups[name] = g
		for _, p := range t.producers {
			g.watch(p)
		}
	}
	return g
}

// Groups returns the groups of the topic, sorted by name.
func (t *Topic) Groups() []*Group {
	t.mu.RLock()
	defer t.mu.RUnlock()
	groups := make([]*Group, 0, len(t.groups))
	for _, name := range slices.Sorted(maps.Keys(t.groups)) {
		groups = append(groups, t.groups[name])
	}
	return groups
}

// Remove records that the test removed all messages numbered so far from the broker. What is
// missing of them is not outstanding, and no group that comes later expects any.
func (t *Topic) Remove(at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.producers {
		next := p.next.Load()
		p.course.note(at, next)
		p.removed.Store(next)
	}
}

// Numbered returns how many messages the producers have numbered.
func (t *Topic) Numbered() (n uint64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, p := range t.producers {
		n += p.next.Load()
	}
	return n
}
