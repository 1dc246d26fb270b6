package hist

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"
)

// Packed is a histogram put away: all that it held, in a few KiB. It does not change, and is made by [Histogram.Pack].
type Packed struct {
	buckets  []byte // the counts of the buckets, see Pack
	min, max int64
	count    uint64
	negative uint64
	overflow uint64
}

// Count is what [Histogram.Count] was.
func (p Packed) Count() uint64 { return p.count }

// Empty tells whether there is nothing in it, as in one that Pack did not make.
func (p Packed) Empty() bool { return p.count == 0 && p.negative == 0 && p.overflow == 0 }

// Pack puts the histogram away. The counts of neighbouring buckets are alike, so an entropy coder makes few bytes of them.
func (h *Histogram) Pack() Packed {
	var plain []byte
	next := 0
	for i, c := range h.buckets() {
		if i > next { // as many empty buckets, after a 0, which is no bucket's count
			plain = binary.AppendUvarint(append(plain, 0), uint64(i-next)) //gosec:disable G115 -- a count, far below the limit
		}
		plain = binary.AppendUvarint(plain, c)
		next = i + 1
	}
	var packed bytes.Buffer
	w := coders.Get().(*flate.Writer) //nolint:forcetypeassert // nothing else is put there
	defer coders.Put(w)
	w.Reset(&packed)
	_, _ = w.Write(plain) // a buffer takes all that is written
	_ = w.Close()
	return Packed{bytes.Clone(packed.Bytes()), h.min, h.max, h.count, h.negative, h.overflow}
}

// coders are kept, for each has tables of half a MiB.
var coders = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.HuffmanOnly)
	if err != nil {
		panic(err) // the level is one that there is
	}
	return w
}}

// AddTo adds all that was put away to a histogram, as [Histogram.Merge] does.
func (p Packed) AddTo(h *Histogram) {
	h.negative += p.negative
	h.overflow += p.overflow
	if p.count == 0 {
		return
	}
	plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(p.buckets)))
	if err != nil {
		panic(fmt.Sprintf("hist: not what Pack made: %v", err))
	}
	number := func() uint64 {
		v, n := binary.Uvarint(plain)
		plain = plain[max(n, 0):]
		return v
	}
	for i := 0; len(plain) > 0; i++ {
		c := number()
		if c == 0 {
			i += int(min(number(), math.MaxInt32))
			c = number()
		}
		*h.bucket(i) += c
	}
	h.include(p.min, p.max, p.count)
}
