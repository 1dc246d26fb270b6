//gosec:disable G115 -- counts, not negative, and those of a page small
package account

import (
	"math"
	"math/bits"
	"sync"
	"unsafe"
)

// delivery is what has become of one producer's messages in one group.
type delivery struct {
	producer *Producer
	received bitmap
	settled  bitmap
	again    bitmap // first copies that the broker had delivered before
	late     bitmap // of these, those whose first delivery has come since
	further  bitmap // received again, but for those
	drained  bitmap // read to complete the account, by no consumer of the test
	doubted  bitmap // the broker may be done with them although nobody settled them
	cleared  bitmap // read again, and settled, to complete the account
	foreign  bool   // of a producer of another topic or process

	mu      sync.Mutex
	spans   []Bounds // what the group expects, ascending
	removed uint64   // what is numbered below, and has not arrived, the test has removed from the broker
	// What count has found, page by page, so that it need not look again at a page that has not
	// changed.
	found []found
}

// Bounds is what a group expects of a producer while it is there: From <= number < Until.
type Bounds struct {
	From  uint64 `json:"from"`
	Until uint64 `json:"until"`
}

// counts are numbers of messages.
type counts struct{ expected, received, drained, missing, outstanding uint64 }

// found is what a page held when the counts of its bits were those of version.
type found struct {
	version                                           [3]uint16
	expected, received, drained, missing, outstanding uint16
}

// open lets the group expect what is numbered from from on.
func (d *delivery) open(from uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spans = append(d.spans, Bounds{from, math.MaxUint64})
	clear(d.found) // pages were judged by the spans that there were
}

// close lets it expect nothing from until on.
func (d *delivery) close(until uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spans[len(d.spans)-1].Until = until
	clear(d.found)
}

// expects tells whether a number is one that the group waits for.
func (d *delivery) expects(seq uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return within(d.spans, seq)&1 != 0
}

// first adds a copy to what was received and tells whether it is the first one.
func (d *delivery) first(seq uint64, attempt int32) bool {
	if attempt <= 1 {
		return d.received.set(seq)
	}
	d.mu.Lock() // overdue sees both or neither
	defer d.mu.Unlock()
	first := d.received.set(seq)
	if first {
		d.again.set(seq)
	}
	return first
}

// overdue tells, once, whether the first copy of a message was not its first delivery.
func (d *delivery) overdue(seq uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.again.has(seq) && d.late.set(seq)
}

// count counts a producer's messages in the group.
func (d *delivery) count() counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	pages := max(d.producer.expected.len(), d.received.len(), d.drained.len())
	if pages > len(d.found) {
		d.found = append(d.found, make([]found, pages-len(d.found))...)
	}
	var sum counts
	for i := range d.found {
		f := &d.found[i]
		d.look(uint64(i), f)
		sum.expected += uint64(f.expected)
		sum.received += uint64(f.received)
		sum.drained += uint64(f.drained)
		sum.missing += uint64(f.missing)
		sum.outstanding += uint64(f.outstanding)
	}
	return sum
}

// look brings f up to date with page i.
func (d *delivery) look(i uint64, f *found) {
	expected, received, drained := d.producer.expected.page(i), d.received.page(i), d.drained.page(i)
	version := [3]uint16{uint16(expected.count.Load()), uint16(received.count.Load()), uint16(drained.count.Load())}
	if version == f.version {
		return
	}
	*f = found{version: version}
	for k := range pageWords {
		first := i*pageBits + uint64(k)*64
		spans := within(d.spans, first)
		e, r := expected.words[k].Load()&spans, received.words[k].Load()
		l := drained.words[k].Load() & spans &^ r
		missing := e &^ (r | l)
		f.received += uint16(bits.OnesCount64(r))
		f.expected += uint16(bits.OnesCount64(e))
		f.drained += uint16(bits.OnesCount64(l))
		f.missing += uint16(bits.OnesCount64(missing))
		f.outstanding += uint16(bits.OnesCount64(missing &^ between(0, d.removed, first)))
	}
}

// within is a word with a bit for each number of the spans, the first bit being number first.
func within(spans []Bounds, first uint64) uint64 {
	var w uint64
	for _, s := range spans {
		w |= between(s.From, s.Until, first)
	}
	return w
}

// between is a word with a bit for each number of from <= n < until, the first bit being number
// first.
func between(from, until, first uint64) uint64 {
	return ^uint64(0) << distance(from, first) &^ (^uint64(0) << distance(until, first))
}

// distance is how far n is above first, 64 at most. (A shift by 64 leaves nothing.)
func distance(n, first uint64) uint64 {
	if n <= first {
		return 0
	}
	return min(n-first, 64)
}

// remove tells that what is numbered below next and has not arrived was removed from the broker.
func (d *delivery) remove(next uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removed = max(d.removed, next)
	clear(d.found)
}

// held is how many messages were received and not settled, nor cleared, and how many of these are
// not in doubt.
func (d *delivery) held() (sure, all uint64) {
	for i := range uint64(d.received.len()) {
		received, settled, cleared, doubted := d.received.page(i), d.settled.page(i), d.cleared.page(i), d.doubted.page(i)
		if received == empty || settled == full {
			continue
		}
		for k := range pageWords {
			held := received.words[k].Load() &^ (settled.words[k].Load() | cleared.words[k].Load())
			all += uint64(bits.OnesCount64(held))
			sure += uint64(bits.OnesCount64(held &^ doubted.words[k].Load()))
		}
	}
	return sure, all
}

// doubt puts all that is held in doubt.
func (d *delivery) doubt() {
	for i := range uint64(d.received.len()) {
		received, settled := d.received.page(i), d.settled.page(i)
		if received == empty || settled == full {
			continue
		}
		for k := range pageWords {
			held := received.words[k].Load() &^ settled.words[k].Load()
			for ; held != 0; held &= held - 1 {
				d.doubted.set(i*pageBits + uint64(k)*64 + uint64(bits.TrailingZeros64(held)))
			}
		}
	}
}

// memory is about how many bytes the delivery uses.
func (d *delivery) memory() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.received.memory() + d.settled.memory() + d.again.memory() + d.late.memory() + d.further.memory() + d.drained.memory() + d.doubted.memory() +
		d.cleared.memory() + int64(unsafe.Sizeof(*d)) + int64(cap(d.found))*int64(unsafe.Sizeof(found{}))
}
