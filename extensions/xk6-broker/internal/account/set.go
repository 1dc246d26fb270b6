package account

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

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

// Equal reports whether both have the same numbers.
func (s Set) Equal(o Set) bool { return s.get().Equals(o.get()) }

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

// UnmarshalText decodes what MarshalText encoded, and refuses anything else.
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
