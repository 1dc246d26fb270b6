//gosec:disable G115 -- counts, not negative
package account

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
)

// A page is a KiB: small enough for thousands of producers of a few messages each.
const (
	pageBits  = 1 << 13
	pageWords = pageBits / 64
)

// page is a part of a bitmap.
type page struct {
	count atomic.Uint32
	words [pageWords]atomic.Uint64
}

// Two pages that all bitmaps share, and that are never written: without any bit, and with all.
var (
	empty = &page{}
	full  = func() *page {
		p := &page{}
		p.count.Store(pageBits)
		for i := range p.words {
			p.words[i].Store(math.MaxUint64)
		}
		return p
	}()
)

// bitmap is a set of numbers that grows from 0 upwards, safe for concurrent use. Only the first and
// last bit of a page take the lock. BenchmarkBesideRoaring compares it with the library of [Set].
type bitmap struct {
	pages atomic.Pointer[[]atomic.Pointer[page]]
	mu    sync.Mutex // held to change what pages points to
}

// set adds a number and reports whether it is new.
func (b *bitmap) set(n uint64) bool {
	p := b.page(n / pageBits)
	if p == empty {
		p = b.grow(n / pageBits)
	}
	if p == full {
		return false
	}
	word, bit := &p.words[n/64%pageWords], uint64(1)<<(n%64)
	if word.Or(bit)&bit != 0 {
		return false
	}
	if p.count.Add(1) == pageBits {
		b.collapse(n / pageBits)
	}
	return true
}

// setRange adds the numbers from to from+n-1, a word at a time.
func (b *bitmap) setRange(from, n uint64) {
	for to := from + n; from < to; {
		i := from / pageBits
		end := min(to, (i+1)*pageBits)
		p := b.page(i)
		if p == empty {
			p = b.grow(i)
		}
		if p == full {
			from = end
			continue
		}
		var added int
		for from < end {
			first := from &^ 63
			mask := between(from, end, first)
			added += bits.OnesCount64(mask &^ p.words[from/64%pageWords].Or(mask))
			from = min(first+64, end)
		}
		if added > 0 && p.count.Add(uint32(added)) == pageBits {
			b.collapse(i)
		}
	}
}

// has reports whether a number is in the set.
func (b *bitmap) has(n uint64) bool {
	return b.page(n / pageBits).words[n/64%pageWords].Load()&(1<<(n%64)) != 0
}

// page returns the page of an index.
func (b *bitmap) page(i uint64) *page {
	if pages := b.pages.Load(); pages != nil && i < uint64(len(*pages)) {
		if p := (*pages)[i].Load(); p != nil {
			return p
		}
	}
	return empty
}

// grow makes the page of an index.
func (b *bitmap) grow(i uint64) *page {
	b.mu.Lock()
	defer b.mu.Unlock()
	var pages []atomic.Pointer[page]
	if p := b.pages.Load(); p != nil {
		pages = *p
	}
	if i >= uint64(len(pages)) {
		more := make([]atomic.Pointer[page], max(i+1, 2*uint64(len(pages))))
		for k := range pages {
			more[k].Store(pages[k].Load())
		}
		pages = more
		b.pages.Store(&more)
	}
	if pages[i].Load() == nil {
		pages[i].Store(&page{})
	}
	return pages[i].Load()
}

// collapse puts the shared page in the place of one whose bits are all set.
func (b *bitmap) collapse(i uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	(*b.pages.Load())[i].Store(full)
}

// count returns how many numbers are in the set.
func (b *bitmap) count() uint64 {
	var n uint64
	for i := range uint64(b.len()) {
		n += uint64(b.page(i).count.Load())
	}
	return n
}

// len returns how many pages there may be.
func (b *bitmap) len() int {
	if pages := b.pages.Load(); pages != nil {
		return len(*pages)
	}
	return 0
}
