package track

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// words are the bits of a page.
type words [pageWords]uint64

// Set is a set of numbers, as a [Ledger] holds it. It does not change while the bitmap it came from goes on.
type Set struct{ pages []*words } // nil is an empty page

// snapshot copies a bitmap.
func (b *bitmap) snapshot() Set {
	s := Set{make([]*words, b.len())}
	for i := range s.pages {
		from := b.page(uint64(i))
		if from == empty {
			continue
		}
		w := &words{}
		for k := range w {
			w[k] = from.words[k].Load()
		}
		s.pages[i] = w
	}
	return s.trim()
}

// trim drops empty pages at the end.
func (s Set) trim() Set {
	for len(s.pages) > 0 && s.pages[len(s.pages)-1] == nil {
		s.pages = s.pages[:len(s.pages)-1]
	}
	return s
}

var noWords words

// page gives the bits of a page, never nil and never to be written.
func (s Set) page(i int) *words {
	if i < len(s.pages) && s.pages[i] != nil {
		return s.pages[i]
	}
	return &noWords
}

// Len is how many numbers are in the set.
func (s Set) Len() uint64 {
	var n uint64
	for _, p := range s.pages {
		if p != nil {
			for _, w := range p {
				n += uint64(bits.OnesCount64(w)) //gosec:disable G115 -- a count, far below the limit
			}
		}
	}
	return n
}

// combine makes a set word by word.
func combine(a, b Set, do func(a, b uint64) uint64) Set {
	s := Set{make([]*words, max(len(a.pages), len(b.pages)))}
	for i := range s.pages {
		x, y := a.page(i), b.page(i)
		if x == &noWords && y == &noWords {
			continue
		}
		w := &words{}
		for k := range w {
			w[k] = do(x[k], y[k])
		}
		if *w != noWords {
			s.pages[i] = w
		}
	}
	return s.trim()
}

func (s Set) and(o Set) Set    { return combine(s, o, func(a, b uint64) uint64 { return a & b }) }
func (s Set) andNot(o Set) Set { return combine(s, o, func(a, b uint64) uint64 { return a &^ b }) }

// Or is what is in one of the sets, or in both.
func (s Set) Or(o Set) Set { return combine(s, o, func(a, b uint64) uint64 { return a | b }) }

// Within keeps the numbers of the spans.
func (s Set) Within(spans []Bounds) Set {
	kept := Set{make([]*words, len(s.pages))}
	for i, p := range s.pages {
		first := uint64(i) * pageBits
		whole := slices.ContainsFunc(spans, func(b Bounds) bool { return b.From <= first && first+pageBits <= b.Until })
		if p == nil || whole {
			kept.pages[i] = p
			continue
		}
		w := &words{}
		for k := range w {
			w[k] = p[k] & within(spans, first+uint64(k)*64)
		}
		kept.pages[i] = w
	}
	return kept
}

// below keeps the numbers below one.
func (s Set) below(until uint64) Set { return s.Within([]Bounds{{0, until}}) }

// The encoding: runs of pages, each a tag and, for the first two, how many there are in a row.
const (
	emptyPages = iota
	fullPages
	onePage // its bits follow
)

// maxPages bounds what is decoded, in pages.
const maxPages = maxForeignMessages / pageBits

var errSet = errors.New("track: no set of numbers")

// GobEncode encodes the set: a few bytes where it is complete, at worst a bit for each number up to its greatest.
func (s Set) GobEncode() ([]byte, error) {
	b := binary.AppendUvarint(nil, uint64(len(s.pages)))
	for i := 0; i < len(s.pages); {
		tag := tagOf(s.pages[i])
		if tag == onePage {
			b = append(b, onePage)
			for _, w := range s.pages[i] {
				b = binary.LittleEndian.AppendUint64(b, w)
			}
			i++
			continue
		}
		n := 1
		for i+n < len(s.pages) && tagOf(s.pages[i+n]) == tag {
			n++
		}
		b = binary.AppendUvarint(append(b, tag), uint64(n))
		i += n
	}
	return b, nil
}

func tagOf(p *words) byte {
	switch {
	case p == nil || *p == noWords:
		return emptyPages
	case *p == allWords:
		return fullPages
	}
	return onePage
}

var allWords = func() (w words) {
	for i := range w {
		w[i] = ^uint64(0)
	}
	return w
}()

// GobDecode decodes what GobEncode encoded, and refuses anything else.
func (s *Set) GobDecode(b []byte) error {
	total, n := binary.Uvarint(b)
	if n <= 0 || total > maxPages {
		return errSet
	}
	b = b[n:]
	var pages []*words
	for uint64(len(pages)) < total {
		if len(b) == 0 {
			return errSet
		}
		tag := b[0]
		b = b[1:]
		if tag == onePage {
			if len(b) < 8*pageWords {
				return errSet
			}
			w := &words{}
			for k := range w {
				w[k] = binary.LittleEndian.Uint64(b[8*k:])
			}
			pages, b = append(pages, w), b[8*pageWords:]
			continue
		}
		count, n := binary.Uvarint(b)
		if n <= 0 || count == 0 || count > total-uint64(len(pages)) {
			return errSet
		}
		b = b[n:]
		var p *words
		switch tag {
		case emptyPages:
		case fullPages:
			p = &allWords
		default:
			return fmt.Errorf("%w: tag %d", errSet, tag)
		}
		for range count {
			pages = append(pages, p)
		}
	}
	if len(b) > 0 {
		return errSet
	}
	s.pages = pages
	return nil
}
