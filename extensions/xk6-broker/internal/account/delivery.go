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
	again    bitmap // of received, those whose first copy the broker had delivered before
	drained  bitmap // read and, if received before, settled to complete the account
	foreign  bool   // the producer is of another topic or process

	mu    sync.Mutex
	spans []Bounds // what the group expects, ascending
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

// memory returns about how many bytes the delivery uses.
func (d *delivery) memory() int64 {
	bitmaps := d.received.memory() + d.settled.memory() + d.again.memory() + d.drained.memory()
	return bitmaps + int64(unsafe.Sizeof(*d))
}
