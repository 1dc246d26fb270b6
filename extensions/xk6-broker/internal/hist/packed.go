//gosec:disable G115 -- counts, which are not negative and below both limits
package hist

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Packed is a histogram in a few hundred bytes, in memory and in files. It does not change.
// [Histogram.Pack] makes it. The extremes are exact, and HDR has the rest.
type Packed struct {
	Count uint64 `json:"count"`
	Min   int64  `json:"min"`
	Max   int64  `json:"max"`
	HDR   []byte `json:"hdr"` // HdrHistogram's compressed V2 encoding
}

// Empty reports whether there are no values, as in the zero value.
func (p Packed) Empty() bool { return p.Count == 0 }

// With returns the values of both.
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

// AddTo adds the values to a histogram. It panics if the encoding is damaged.
func (p Packed) AddTo(h *Histogram) {
	if p.Empty() {
		return
	}
	unpacked, err := p.unpack()
	if err != nil {
		panic("hist: " + err.Error())
	}
	h.Merge(unpacked)
}

// Pack encodes the histogram without loss.
func (h *Histogram) Pack() Packed {
	return Packed{h.Count(), h.min, h.max, h.encode()}
}

// The cookies of HdrHistogram's V2 encoding.
const (
	plainCookie      = 0x1c849313
	compressedCookie = 0x1c849314
)

// mostValues is the number of values up to which counts have the form of [binary.AppendVarint].
const mostValues = 1 << 50

// encode returns the distribution in HdrHistogram's compressed V2 encoding. The library's EncodeV2
// takes ten times as long and a MiB of memory, for each latency of each topic once a second.
func (h *Histogram) encode() []byte {
	plain := make([]byte, 40)
	next := 0
	for v, n := range h.buckets() {
		i := index(v)
		if i > next {
			plain = binary.AppendVarint(plain, int64(next-i)) // empty buckets
		}
		plain = binary.AppendVarint(plain, int64(n))
		next = i + 1
	}
	binary.BigEndian.PutUint32(plain, plainCookie)
	binary.BigEndian.PutUint32(plain[4:], uint32(len(plain)-40))
	binary.BigEndian.PutUint32(plain[12:], digits)
	binary.BigEndian.PutUint64(plain[16:], 1) // the lowest value
	binary.BigEndian.PutUint64(plain[24:], uint64(Highest))
	binary.BigEndian.PutUint64(plain[32:], math.Float64bits(1)) // the ratio of values to integers

	out := bytes.NewBuffer(make([]byte, 8))
	w := compressors.Get().(*zlib.Writer) //nolint:forcetypeassert // the pool has nothing else
	defer compressors.Put(w)
	w.Reset(out)
	_, _ = w.Write(plain) // a buffer accepts everything
	_ = w.Close()
	encoded := bytes.Clone(out.Bytes())
	binary.BigEndian.PutUint32(encoded, compressedCookie)
	binary.BigEndian.PutUint32(encoded[4:], uint32(len(encoded)-8))
	return encoded
}

// compressors has writers for reuse, because each has tables of half a MiB.
var compressors = sync.Pool{New: func() any {
	w, err := zlib.NewWriterLevel(nil, zlib.HuffmanOnly)
	if err != nil {
		panic(err) // the level exists
	}
	return w
}}

// unpack decodes the histogram. It refuses contradictory numbers.
func (p Packed) unpack() (*Histogram, error) {
	if p.Empty() {
		return &Histogram{}, nil
	}
	sparse, err := hdrhistogram.DecodePacked(base64.StdEncoding.AppendEncode(nil, p.HDR))
	if err != nil {
		return nil, fmt.Errorf("histogram: %w", err)
	}
	layout := sparse.LowestTrackableValue() == 1 && sparse.HighestTrackableValue() == Highest
	if !layout || sparse.SignificantFigures() != digits {
		return nil, errors.New("histogram: another layout of buckets")
	}
	if uint64(sparse.TotalCount()) != p.Count || p.Count > mostValues {
		return nil, fmt.Errorf("histogram: count %d, but %d values", p.Count, sparse.TotalCount())
	}
	ordered := 0 <= p.Min && p.Min <= p.Max && p.Max <= Highest
	if !ordered || index(p.Min) != index(sparse.Min()) || index(p.Max) != index(sparse.Max()) {
		return nil, fmt.Errorf("histogram: min %d and max %d do not fit the values", p.Min, p.Max)
	}
	return &Histogram{sparse, p.Min, p.Max}, nil
}

// UnmarshalJSON reads a packed histogram. It refuses a damaged one.
func (p *Packed) UnmarshalJSON(text []byte) error {
	type document Packed
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	if _, err := Packed(d).unpack(); err != nil {
		return err
	}
	*p = Packed(d)
	return nil
}

// MarshalJSON writes the histogram as a [Packed].
func (h *Histogram) MarshalJSON() ([]byte, error) { return json.Marshal(h.Pack()) }

// UnmarshalJSON reads the histogram from a [Packed].
func (h *Histogram) UnmarshalJSON(text []byte) error {
	var p Packed
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	*h = Histogram{}
	p.AddTo(h)
	return nil
}
