package hist

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
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

// Empty reports whether there is nothing in it, as in one that Pack did not make.
func (p Packed) Empty() bool { return p.count == 0 && p.negative == 0 && p.overflow == 0 }

// Size returns how many bytes the buckets take.
func (p Packed) Size() int { return len(p.buckets) }

// With returns all that both hold.
func (p Packed) With(o Packed) Packed {
	switch {
	case o.Empty():
		return p
	case p.Empty():
		return o
	}
	h := &Histogram{}
	p.AddTo(h)
	o.AddTo(h)
	return h.Pack()
}

// packedDocument is a packed histogram in JSON.
type packedDocument struct {
	Count    uint64 `json:"count"`
	Min      int64  `json:"min"`
	Max      int64  `json:"max"`
	Negative uint64 `json:"negative,omitempty"`
	Overflow uint64 `json:"overflow,omitempty"`
	Buckets  []byte `json:"buckets"`
}

// MarshalJSON encodes the packed histogram without loss.
func (p Packed) MarshalJSON() ([]byte, error) {
	return json.Marshal(packedDocument{p.count, p.min, p.max, p.negative, p.overflow, p.buckets})
}

// UnmarshalJSON decodes what MarshalJSON encoded, and refuses what it cannot have encoded.
func (p *Packed) UnmarshalJSON(text []byte) error {
	var d packedDocument
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	decoded := Packed{d.Buckets, d.Min, d.Max, d.Count, d.Negative, d.Overflow}
	if err := decoded.check(); err != nil {
		return err
	}
	*p = decoded
	return nil
}

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
	err := p.each(func(i int, n uint64) { *h.bucket(i) += n })
	if err != nil {
		panic(fmt.Sprintf("hist: not what Pack made: %v", err))
	}
	h.include(p.min, p.max, p.count)
}

// check reports why the packed histogram is not what Pack made.
func (p Packed) check() error {
	h := &Histogram{min: p.min, max: p.max, negative: p.negative, overflow: p.overflow}
	var total uint64
	err := p.each(func(i int, n uint64) {
		*h.bucket(i) = n
		total = min(total, math.MaxUint64-n) + n
	})
	if err != nil || total > math.MaxInt64 {
		return errPacked
	}
	h.count = p.count
	return h.check(total)
}

var errPacked = errors.New("histogram: damaged buckets")

// decoders are kept, because each takes 40 KiB.
var decoders = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// each calls do for every bucket that is not empty.
func (p Packed) each(do func(i int, n uint64)) error {
	if len(p.buckets) == 0 {
		return nil
	}
	r := decoders.Get().(io.ReadCloser) //nolint:forcetypeassert // nothing else is put there
	defer decoders.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(p.buckets), nil); err != nil { //nolint:forcetypeassert // a flate reader is one
		return errPacked
	}
	plain, err := io.ReadAll(io.LimitReader(r, mostPlain+1))
	if err != nil || len(plain) > mostPlain {
		return errPacked
	}
	for i := 0; len(plain) > 0; i++ {
		n, length := binary.Uvarint(plain)
		if length <= 0 {
			return errPacked
		}
		if plain = plain[length:]; n == 0 {
			skipped, length := binary.Uvarint(plain)
			if length <= 0 || skipped == 0 || skipped > rows*rowLen {
				return errPacked
			}
			plain = plain[length:]
			i += int(skipped) - 1 //gosec:disable G115 -- bounded
			continue
		}
		if i > index(Highest) {
			return errPacked
		}
		do(i, n)
	}
	return nil
}

// mostPlain is how many bytes the counts of all buckets can take.
const mostPlain = rows * rowLen * binary.MaxVarintLen64
