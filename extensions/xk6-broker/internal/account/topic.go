// Package account accounts for every message of a test: expected, received, lost, duplicated,
// redelivered, reordered, or uncertain. It is exact, and has no driver and no clock.
//
// A [Topic] has producers, which number their messages 0, 1, 2, ..., and groups. Each group
// expects every message once. [Topic.Snapshot] makes the ledger of a process, [Compute] the
// accounts of a test from the ledgers of its processes.
package account

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
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
	seen     atomic.Uint64 // next at the last look
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

// Group returns the group of a name: of a consumer group or, if every subscriber gets every message,
// of one subscriber. A new one expects the messages that were not removed before, if earliest is
// true, or only those that are numbered after [Group.Ready].
func (t *Topic) Group(name string, earliest bool) *Group {
	t.mu.Lock()
	defer t.mu.Unlock()
	g, ok := t.groups[name]
	if !ok {
		g = &Group{topic: t, name: name, open: earliest, deliveries: map[uint64]*delivery{}}
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

// Remove records that the test removed all messages numbered so far from the broker. None of them
// is outstanding, and no group that comes later expects any.
func (t *Topic) Remove(at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.producers {
		next := p.next.Load()
		p.course.note(at, next)
		p.removed.Store(next)
	}
}

// Mark is how many numbers a producer had handed out right before an instant, in ns since the Unix
// epoch.
type Mark struct {
	At   int64  `json:"at"`
	Next uint64 `json:"next"`
}

// Course is the progress of a producer over time, in ascending order.
type Course []Mark

// handedOut returns the least and the most numbers that a producer may have handed out right before
// an instant. next is its final count.
func (c Course) handedOut(at int64, next uint64) (least, most uint64) {
	i := sort.Search(len(c), func(i int) bool { return c[i].At >= at })
	if i > 0 {
		least = c[i-1].Next
	}
	if i == len(c) {
		return least, next
	}
	if c[i].At == at {
		least = c[i].Next
	}
	for ; i < len(c)-1 && c[i+1].At == at; i++ { // several marks of one instant
	}
	return least, c[i].Next
}

// recorder records a course: the beginning and the end of each burst of sends. If there are many,
// every second mark goes, and sends that are further apart count as one burst.
type recorder struct {
	last  atomic.Int64 // the last send
	until atomic.Int64 // sends before it need no mark

	mu    sync.Mutex
	width int64 // ns that one mark covers
	marks Course
}

const (
	mostMarks = 2048
	narrowest = 1_000_000 // ns
)

// sent records that numbers from first on are handed out. One goroutine at a time may call it.
func (r *recorder) sent(at int64, first uint64) {
	last := r.last.Swap(at)
	if at <= r.until.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last != 0 && last+1 < at {
		r.marks = append(r.marks, Mark{last + 1, first})
	}
	r.marks = append(r.marks, Mark{at, first})
	if len(r.marks) >= mostMarks {
		r.width = max(narrowest, 2*r.width)
		for i := range len(r.marks) / 2 {
			r.marks[i] = r.marks[2*i]
		}
		r.marks = r.marks[:len(r.marks)/2]
	}
	r.until.Store(at + r.width)
}

// note records how many numbers had been handed out at an instant.
func (r *recorder) note(at int64, next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, Mark{at, next})
}

// course returns the course of a producer that has handed out next numbers.
func (r *recorder) course(next uint64) Course {
	last := r.last.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.marks)
	if last != 0 {
		all = append(all, Mark{last + 1, next})
	}
	all = slices.DeleteFunc(all, func(m Mark) bool { return m.Next > next }) // sends may go on
	slices.SortFunc(all, func(a, b Mark) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Next, b.Next)) })
	return all
}
