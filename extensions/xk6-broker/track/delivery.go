package track

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// delivery is what has become of one producer's messages in one group.
type delivery struct {
	producer    *Producer
	from, until atomic.Uint64 // what the group expects: from <= seq < until
	received    bitmap
	settled     bitmap
	again       bitmap // of a shared topic: first copies that the broker had delivered before
	foreign     bool   // of another process's producer

	// What count has found, page by page, so that it need not look again at a page that has not changed.
	mu     sync.Mutex
	bounds [2]uint64
	found  []found
}

// counts are numbers of messages.
type counts struct{ expected, received, missing uint64 }

// found is what a page held when the counts of its bits were those of version.
type found struct {
	version                     [2]uint16
	expected, received, missing uint16
}

// count counts a producer's messages in the group.
func (d *delivery) count() counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bounds := [2]uint64{d.from.Load(), d.until.Load()}; bounds != d.bounds {
		d.bounds = bounds
		clear(d.found) // what was looked at while the bounds changed may have been judged by the old ones
	}
	pages := max(d.producer.expected.len(), d.received.len())
	if pages > len(d.found) {
		d.found = append(d.found, make([]found, pages-len(d.found))...)
	}
	var sum counts
	for i := range d.found {
		f := &d.found[i]
		d.look(uint64(i), f)
		sum.expected += uint64(f.expected)
		sum.received += uint64(f.received)
		sum.missing += uint64(f.missing)
	}
	return sum
}

// look brings f up to date with page i.
func (d *delivery) look(i uint64, f *found) {
	expected, received := d.producer.expected.page(i), d.received.page(i)
	version := [2]uint16{uint16(expected.count.Load()), uint16(received.count.Load())}
	if version == f.version {
		return
	}
	*f = found{version: version}
	for k := range pageWords {
		e := expected.words[k].Load() & between(d.bounds[0], d.bounds[1], i*pageBits+uint64(k)*64)
		r := received.words[k].Load()
		f.expected += uint16(bits.OnesCount64(e))
		f.received += uint16(bits.OnesCount64(r))
		f.missing += uint16(bits.OnesCount64(e &^ r))
	}
}

// between is a word with a bit for each number of from <= n < until, the first bit being number first.
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

// missing yields the numbers of the messages that are expected and have not been received, ascending.
func (d *delivery) missing(yield func(uint64) bool) {
	from, until := d.from.Load(), d.until.Load()
	for i := range uint64(d.producer.expected.len()) {
		expected, received := d.producer.expected.page(i), d.received.page(i)
		if expected == empty || received == full {
			continue
		}
		for k := range pageWords {
			first := i*pageBits + uint64(k)*64
			m := expected.words[k].Load() &^ received.words[k].Load() & between(from, until, first)
			for ; m != 0; m &= m - 1 {
				if !yield(first + uint64(bits.TrailingZeros64(m))) {
					return
				}
			}
		}
	}
}

// memory is about how many bytes the delivery uses.
func (d *delivery) memory() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.received.memory() + d.settled.memory() + d.again.memory() +
		int64(unsafe.Sizeof(*d)) + int64(cap(d.found))*int64(unsafe.Sizeof(found{}))
}
