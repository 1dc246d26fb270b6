// Package account accounts for every message of a run: which were expected, which arrived, and
// which arrived twice, again or out of order. It is exact, not a sample, and takes about a bit a
// message where messages are missing and next to nothing where they are not.
//
// A [Topic] has producers, which number their messages 0, 1, 2, ..., and groups, each of which
// expects every message once. A message is known by its producer's ID and its number, whatever path
// it takes.
package account

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Topic is the accounting of one topic. It is safe for concurrent use.
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
	known    atomic.Uint64 // what next was when somebody last looked
	removed  atomic.Uint64 // what it was when the messages were removed from the broker on purpose
	_        [64]byte
	next     atomic.Uint64 // on a cache line of its own, for each message changes it
	_        [64]byte
}

// Producer gives the producer of that ID, a new one if the topic has none. The ID must be unlike
// that of any producer outside this process whose messages may arrive here too.
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

// ID is what identifies the producer in its messages.
func (p *Producer) ID() uint64 { return p.id }

// Next hands out the number of the next message.
func (p *Producer) Next() uint64 { return p.next.Add(1) - 1 }

// NextN hands out n consecutive numbers and returns the first.
func (p *Producer) NextN(n int) uint64 { return p.next.Add(uint64(n)) - uint64(n) } //gosec:disable G115 -- a count, far below the limit

// Expect tells that the message must arrive: the broker has confirmed it or, where it confirms
// nothing, it was sent. Telling so twice changes nothing. Expect panics on a number that Next has
// not handed out.
func (p *Producer) Expect(seq uint64) {
	if !p.numbered(seq) {
		panic(fmt.Sprintf("account: message %d of producer %d is expected, but Next did not hand it out", seq, p.id))
	}
	p.expected.set(seq)
}

// ExpectN tells that n consecutive messages must arrive, as [Producer.Expect] does of one.
func (p *Producer) ExpectN(first uint64, n int) {
	if n <= 0 {
		return
	}
	if last := first + uint64(n) - 1; !p.numbered(last) {
		panic(fmt.Sprintf("account: message %d of producer %d is expected, but Next did not hand it out", last, p.id))
	}
	p.expected.setRange(first, uint64(n))
}

// numbered tells whether Next has handed out seq.
func (p *Producer) numbered(seq uint64) bool {
	if seq < p.known.Load() {
		return true
	}
	next := p.next.Load()
	p.known.Store(next) // a store that comes late leaves it too low, which costs a look at next and no more
	return seq < next
}

// Group gives the group of that name, a new one if the topic has none; since is then ignored. A
// name stands for a consumer group or, where every subscriber gets every message, for one
// subscriber.
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

// Groups gives the groups of the topic, sorted by name.
func (t *Topic) Groups() []*Group {
	t.mu.RLock()
	defer t.mu.RUnlock()
	groups := make([]*Group, 0, len(t.groups))
	for _, name := range slices.Sorted(maps.Keys(t.groups)) {
		groups = append(groups, t.groups[name])
	}
	return groups
}

// Remove tells that what is numbered so far was removed from the broker on purpose: a group that
// comes later expects none of it, even one since [Earliest]. To those that are there [Group.Remove]
// tells it.
func (t *Topic) Remove() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.producers {
		p.removed.Store(p.next.Load())
	}
}

// Expected is how many messages must arrive at a group that comes now, and expects everything.
func (t *Topic) Expected() (n uint64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, p := range t.producers {
		n += p.expected.countFrom(p.removed.Load())
	}
	return n
}

// Memory is about how many bytes the accounting uses, of all producers and groups.
func (t *Topic) Memory() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var bytes int64
	for _, p := range t.producers {
		bytes += p.expected.memory()
	}
	for _, g := range t.groups {
		for _, d := range g.deliveries {
			bytes += d.memory()
		}
	}
	return bytes
}
