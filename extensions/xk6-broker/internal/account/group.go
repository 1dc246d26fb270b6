//gosec:disable G115 -- counts, not negative, and small in a page
package account

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Group expects every message once. It is safe for concurrent use.
type Group struct {
	topic      *Topic
	name       string
	deliveries map[uint64]*delivery // by producer; guarded by the topic's lock, as the next is
	open       bool                 // it expects new messages

	duplicated, redelivered, reordered, foreign atomic.Uint64
}

// watch begins to account for the messages of a producer. The topic's lock is held.
func (g *Group) watch(p *Producer) {
	d := &delivery{producer: p}
	if g.open {
		d.open(p.removed.Load())
	}
	g.deliveries[p.id] = d
}

// maxForeignMessages bounds the numbers of a producer of another topic or process.
const maxForeignMessages = 1 << 36

// adopt begins to remember the messages of a producer of another topic or process.
func (g *Group) adopt(id uint64) *delivery {
	g.topic.mu.Lock()
	defer g.topic.mu.Unlock()
	if d, ok := g.deliveries[id]; ok {
		return d
	}
	p := &Producer{id: id}
	p.next.Store(maxForeignMessages)
	d := &delivery{producer: p, foreign: true}
	g.deliveries[id] = d
	return d
}

// Ready records that the group is consuming: it expects messages that are numbered from now on. It
// does nothing if the group expects them already.
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

// Close records that the group has stopped consuming: it expects no messages that are numbered from
// now on, until it is ready again. A group whose messages are kept while it is away needs no Close.
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

// Tally counts the messages of a group by their fates.
type Tally struct {
	Expected    uint64 `json:"expected"`    // must arrive
	Received    uint64 `json:"received"`    // arrived at a consumer of the test, whatever the number of copies
	Drained     uint64 `json:"drained"`     // arrived only when the rest was read to complete the account
	Missing     uint64 `json:"missing"`     // expected, and neither of these
	Unexpected  uint64 `json:"unexpected"`  // arrived, and not expected
	Settled     uint64 `json:"settled"`     // settled, whatever the number of copies
	Duplicated  uint64 `json:"duplicated"`  // copies of messages that were settled already
	Redelivered uint64 `json:"redelivered"` // copies that were delivered again, see [Redelivered]
	Reordered   uint64 `json:"reordered"`   // first copies that a later message of the producer and partition overtook
	Foreign     uint64 `json:"foreign"`     // copies of messages that no producer of the topic has numbered
}

// Tally counts. It is exact once nothing is going on. At all times Expected - Missing + Unexpected
// = Received + Drained.
func (g *Group) Tally() Tally {
	t := Tally{
		Duplicated:  g.duplicated.Load(),
		Redelivered: g.redelivered.Load(),
		Reordered:   g.reordered.Load(),
		Foreign:     g.foreign.Load(),
	}
	g.each(func(d *delivery) {
		c := d.count()
		t.Expected += c.expected
		t.Received += c.received
		t.Drained += c.drained
		t.Missing += c.missing
		t.Settled += d.settled.count()
	})
	t.Unexpected = t.unexpected()
	return t
}

// each calls do for the deliveries of the topic's own producers.
func (g *Group) each(do func(*delivery)) {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	for _, d := range g.deliveries {
		if !d.foreign {
			do(d)
		}
	}
}

// Add adds the counts of another group.
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

// Held returns how many messages the group has received and not settled, of whatever producer.
func (g *Group) Held() (n uint64) {
	g.topic.mu.RLock()
	defer g.topic.mu.RUnlock()
	for _, d := range g.deliveries {
		n += d.held()
	}
	return n
}

// Outstanding returns how many messages are expected, have not arrived and were not removed.
func (g *Group) Outstanding() (n uint64) {
	g.each(func(d *delivery) { n += d.count().outstanding })
	return n
}

// delivery holds the fates of one producer's messages in one group.
type delivery struct {
	producer *Producer
	received bitmap
	settled  bitmap
	again    bitmap // of received, those whose first copy the broker had delivered before
	drained  bitmap // read and, if received before, settled to complete the account
	foreign  bool   // the producer is of another topic or process

	mu    sync.Mutex
	spans []Bounds // of expected messages, ascending
}

// Bounds is a range of numbers: From <= number < Until.
type Bounds struct {
	From  uint64 `json:"from"`
	Until uint64 `json:"until"`
}

// counts are numbers of messages.
type counts struct{ expected, received, drained, missing, outstanding uint64 }

// open makes the group expect the numbers from from on.
func (d *delivery) open(from uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spans = append(d.spans, Bounds{from, math.MaxUint64})
}

// close makes it expect nothing from until on.
func (d *delivery) close(until uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spans[len(d.spans)-1].Until = until
}

// expects returns the ranges that the group expects.
func (d *delivery) expects() []Bounds {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Bounds(nil), d.spans...)
}

// count counts a producer's messages in the group.
func (d *delivery) count() (c counts) {
	spans, removed := d.expects(), d.producer.removed.Load()
	for i := range uint64(max(d.producer.expected.len(), d.received.len(), d.drained.len())) {
		expected, received, drained := d.producer.expected.page(i), d.received.page(i), d.drained.page(i)
		inside := covers(spans, i*pageBits, (i+1)*pageBits)
		if inside && expected == full && received == full {
			c.expected += pageBits
			c.received += pageBits
			continue
		}
		for k := range pageWords {
			first := i*pageBits + uint64(k)*64
			within := ^uint64(0)
			if !inside {
				within = inSpans(spans, first)
			}
			e, r := expected.words[k].Load()&within, received.words[k].Load()
			l := drained.words[k].Load() & within &^ r
			missing := e &^ (r | l)
			c.expected += uint64(bits.OnesCount64(e))
			c.received += uint64(bits.OnesCount64(r))
			c.drained += uint64(bits.OnesCount64(l))
			c.missing += uint64(bits.OnesCount64(missing))
			c.outstanding += uint64(bits.OnesCount64(missing &^ between(0, removed, first)))
		}
	}
	return c
}

// covers reports whether one of the spans has all numbers of a range.
func covers(spans []Bounds, from, until uint64) bool {
	for _, s := range spans {
		if s.From <= from && until <= s.Until {
			return true
		}
	}
	return false
}

// inSpans returns a word with a bit for each number of the spans; the first bit is number first.
func inSpans(spans []Bounds, first uint64) uint64 {
	var w uint64
	for _, s := range spans {
		w |= between(s.From, s.Until, first)
	}
	return w
}

// between returns a word with a bit for each number of from <= n < until; the first bit is number
// first.
func between(from, until, first uint64) uint64 {
	return ^uint64(0) << distance(from, first) &^ (^uint64(0) << distance(until, first))
}

// distance returns how far n is above first, 64 at most. A shift by 64 leaves nothing.
func distance(n, first uint64) uint64 {
	if n <= first {
		return 0
	}
	return min(n-first, 64)
}

// held returns how many messages were received and not settled.
func (d *delivery) held() (n uint64) {
	for i := range uint64(d.received.len()) {
		received, settled, drained := d.received.page(i), d.settled.page(i), d.drained.page(i)
		if received == empty || settled == full {
			continue
		}
		for k := range pageWords {
			done := settled.words[k].Load() | drained.words[k].Load()
			n += uint64(bits.OnesCount64(received.words[k].Load() &^ done))
		}
	}
	return n
}

// Reception classifies a received copy of a message, as a bit set.
type Reception uint8

// Receptions.
const (
	First       Reception = 1 << iota // the first copy that the group has received
	Redelivered                       // delivered before by the broker's count, or a further copy of an unsettled message
	Duplicated                        // a further copy of a settled message
	Reordered                         // a first copy, not redelivered, that a later message has overtaken
	Foreign                           // no producer of the topic has numbered it
)

// Reader is one consumer of a group. One goroutine may use it at a time; different readers of a
// group may be used at the same time.
type Reader struct {
	group   *Group
	last    *source // of the last message
	sources map[uint64]*source
}

// Reader adds a consumer to the group.
func (g *Group) Reader() *Reader {
	return &Reader{group: g, sources: map[uint64]*source{}}
}

// Received accounts for a copy of a message and classifies it. attempt is the broker's count of
// deliveries, this one included; 0 is unknown. A message with an attempt above 1 that the group has
// never received, because a consumer died with it, is First and Redelivered.
func (r *Reader) Received(id, seq uint64, partition int32, attempt int32) Reception {
	s := r.source(id)
	if !s.producer.numbered(seq) {
		r.group.foreign.Add(1)
		return Foreign
	}
	var v Reception
	switch {
	case s.received.set(seq):
		v = First
		if attempt > 1 {
			s.again.set(seq)
		}
	case s.settled.has(seq):
		v = Duplicated
		r.group.duplicated.Add(1)
	default:
		v = Redelivered
	}
	if attempt > 1 {
		v |= Redelivered
	}
	switch {
	case v&Redelivered != 0:
		r.group.redelivered.Add(1)
	case v == First && s.overtaken(seq, partition):
		v |= Reordered
		r.group.reordered.Add(1)
	}
	if s.foreign {
		v |= Foreign
		r.group.foreign.Add(1)
	}
	return v
}

// Drained accounts for a message that was read only to complete the account. It is not received. If
// it was received before and is settled now, the group holds it no longer.
func (r *Reader) Drained(id, seq uint64, settled bool) {
	s := r.source(id)
	if s.producer.numbered(seq) && (settled || !s.received.has(seq)) {
		s.drained.set(seq)
	}
}

// Settled records that the group is done with a message, by an ack or a rejection. If a driver
// settles nothing, call it as soon as the message is received.
func (r *Reader) Settled(id, seq uint64) { r.SettledN(id, seq, 1) }

// SettledN does for n consecutive messages as [Reader.Settled] does for one. It does nothing if the
// producer has not numbered them all.
func (r *Reader) SettledN(id, first uint64, n int) {
	s := r.source(id)
	if n > 0 && s.producer.numbered(first+uint64(n)-1) {
		s.settled.setRange(first, uint64(n))
	}
}

// source finds or makes the source of a producer's messages.
func (r *Reader) source(id uint64) *source {
	if r.last != nil && r.last.producer.id == id {
		return r.last
	}
	s, ok := r.sources[id]
	if !ok {
		r.group.topic.mu.RLock()
		d := r.group.deliveries[id]
		r.group.topic.mu.RUnlock()
		if d == nil {
			d = r.group.adopt(id)
		}
		s = &source{delivery: d, next: map[int32]uint64{}}
		r.sources[id] = s
	}
	r.last = s
	return s
}

// source is one producer as one reader sees it.
type source struct {
	*delivery
	near []uint64         // by partition: one more than the highest number among its first copies
	next map[int32]uint64 // the same for partitions that are no index
}

// nearPartitions is how many partitions need no look into a map.
const nearPartitions = 1024

// overtaken reports whether a later message of the partition came before this first copy.
func (s *source) overtaken(seq uint64, partition int32) bool {
	if partition < 0 || partition >= nearPartitions {
		next := s.next[partition]
		s.next[partition] = max(next, seq+1)
		return seq < next
	}
	for int(partition) >= len(s.near) {
		s.near = append(s.near, 0)
	}
	next := s.near[partition]
	s.near[partition] = max(next, seq+1)
	return seq < next
}
