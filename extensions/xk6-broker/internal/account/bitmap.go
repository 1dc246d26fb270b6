//gosec:disable G115 -- counts, not negative
package account

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
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
	mu    sync.Mutex // held to change pages
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

// Set is a set of numbers that does not change. Its zero value is empty.
type Set struct{ bitmap *roaring64.Bitmap }

// snapshot copies a bitmap.
func (b *bitmap) snapshot() Set {
	s := Set{roaring64.New()}
	numbers := make([]uint64, 0, pageBits)
	for i := range uint64(b.len()) { //gosec:disable G115 -- a count
		from, first := b.page(i), i*pageBits
		switch from {
		case empty:
			continue
		case full:
			s.bitmap.AddRange(first, first+pageBits)
			continue
		}
		numbers = numbers[:0]
		for k := range from.words {
			for w := from.words[k].Load(); w != 0; w &= w - 1 {
				n := bits.TrailingZeros64(w)
				numbers = append(numbers, first+uint64(k)*64+uint64(n)) //gosec:disable G115 -- a count, below 64
			}
		}
		s.bitmap.AddMany(numbers)
	}
	s.bitmap.RunOptimize()
	return s
}

// get returns the bitmap, never nil, which must not be written to.
func (s Set) get() *roaring64.Bitmap {
	if s.bitmap == nil {
		return nothing
	}
	return s.bitmap
}

var nothing = roaring64.New()

// Len returns how many numbers are in the set.
func (s Set) Len() uint64 { return s.get().GetCardinality() }

func (s Set) and(o Set) Set    { return Set{roaring64.And(s.get(), o.get())} }
func (s Set) andNot(o Set) Set { return Set{roaring64.AndNot(s.get(), o.get())} }

// or returns the numbers that are in one of the sets.
func (s Set) or(o Set) Set { return Set{roaring64.Or(s.get(), o.get())} }

// within keeps the numbers of some ranges.
func (s Set) within(ranges []Bounds) Set {
	if s.get().IsEmpty() {
		return s
	}
	within, end := roaring64.New(), s.bitmap.Maximum()+1
	for _, b := range ranges {
		if until := min(b.Until, end); b.From < until {
			within.AddRange(b.From, until)
		}
	}
	return s.and(Set{within})
}

// MarshalText encodes the set in base64 of RoaringBitmap's portable 64-bit serialization; the empty
// set is empty text.
func (s Set) MarshalText() ([]byte, error) {
	if s.Len() == 0 {
		return nil, nil
	}
	text, err := s.bitmap.ToBase64()
	return []byte(text), err
}

// UnmarshalText decodes a set that MarshalText encoded, and refuses anything else.
func (s *Set) UnmarshalText(text []byte) error {
	*s = Set{}
	if len(text) == 0 {
		return nil
	}
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return errors.Join(errSet, err)
	}
	const least = 12 // bytes of each 32-bit set in it; it begins with their number
	if len(raw) < 8 || binary.LittleEndian.Uint64(raw) > uint64(len(raw)/least) {
		return errSet
	}
	b, from := roaring64.New(), bytes.NewReader(raw)
	if _, err := b.ReadFrom(from); err != nil || from.Len() > 0 || b.IsEmpty() {
		return errors.Join(errSet, err)
	}
	if err := b.Validate(); err != nil {
		return errors.Join(errSet, err)
	}
	s.bitmap = b
	return nil
}

// IsZero reports whether the set is empty.
func (s Set) IsZero() bool { return s.Len() == 0 }

var errSet = errors.New("account: no set of numbers")

// ranges appends the numbers of the set to ranges of a producer.
func (s Set) ranges(id uint64, to []Range, limit int) []Range {
	for all := s.get().Iterator(); all.HasNext(); {
		seq, last := all.Next(), len(to)-1
		if last >= 0 && to[last].ID == id && to[last].To+1 == seq {
			to[last].To = seq
			continue
		}
		if len(to) >= limit {
			return to
		}
		to = append(to, Range{ID: id, From: seq, To: seq})
	}
	return to
}
