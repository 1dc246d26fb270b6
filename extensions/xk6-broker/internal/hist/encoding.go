//gosec:disable G115 -- counts and values, within the limits of both
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

// HDR is the distribution as the HdrHistogram library knows it, for its encodings. It holds no more than math.MaxInt64
// values; what is more than that is left out.
func (h *Histogram) HDR() *hdrhistogram.Histogram {
	to := hdrhistogram.New(1, Highest, digits)
	for i, c := range h.buckets() {
		c = min(c, uint64(math.MaxInt64-to.TotalCount()))
		if err := to.RecordValues(lowest(i), int64(c)); err != nil {
			panic("hist: the layout differs from HdrHistogram's: " + err.Error())
		}
	}
	return to
}

// encode returns the distribution in HdrHistogram's compressed V2 encoding, byte for byte as the library's EncodeV2 does. The
// library takes a megabyte of new memory for each, which is much where every topic writes an interval of each trend a second.
func (h *Histogram) encode() (string, error) {
	const (
		cookie     = 0x1c849313 // of the plain encoding, V2
		compressed = 0x1c849314
		mostCounts = 1 << 55 // larger numbers have another form
	)
	if h.count >= mostCounts {
		encoded, err := h.HDR().EncodeV2()
		return string(encoded), err
	}
	var counts []byte
	next := 0
	skip := func(to int) {
		switch zeros := to - next; {
		case zeros == 1:
			counts = binary.AppendVarint(counts, 0)
		case zeros > 1:
			counts = binary.AppendVarint(counts, -int64(zeros))
		}
	}
	for i, c := range h.buckets() {
		skip(i)
		counts = binary.AppendVarint(counts, int64(c))
		next = i + 1
	}
	if next == 0 { // an empty distribution has one empty bucket
		skip(1)
	}
	plain := binary.BigEndian.AppendUint32(nil, cookie)
	plain = binary.BigEndian.AppendUint32(plain, uint32(len(counts)))
	plain = binary.BigEndian.AppendUint32(plain, 0) // the normalizing index offset
	plain = binary.BigEndian.AppendUint32(plain, digits)
	plain = binary.BigEndian.AppendUint64(plain, 1) // the lowest value
	plain = binary.BigEndian.AppendUint64(plain, uint64(Highest))
	plain = binary.BigEndian.AppendUint64(plain, math.Float64bits(1)) // the ratio of integers to values
	plain = append(plain, counts...)

	out := bytes.NewBuffer(make([]byte, 8))
	w := zippers.Get().(*zlib.Writer) //nolint:forcetypeassert // nothing else is put there
	defer zippers.Put(w)
	w.Reset(out)
	_, _ = w.Write(plain) // a buffer takes all that is written
	_ = w.Close()
	encoded := out.Bytes()
	binary.BigEndian.PutUint32(encoded, compressed)
	binary.BigEndian.PutUint32(encoded[4:], uint32(len(encoded)-8))
	return base64.StdEncoding.EncodeToString(encoded), nil
}

// zippers are kept, because each has tables of a MiB.
var zippers = sync.Pool{New: func() any {
	w, err := zlib.NewWriterLevel(nil, zlib.BestCompression)
	if err != nil {
		panic(err) // the level exists
	}
	return w
}}

// document is a histogram in JSON. The extremes are exact there; the encoding only knows their buckets.
type document struct {
	Count    uint64 `json:"count"`
	Min      int64  `json:"min"`
	Max      int64  `json:"max"`
	Negative uint64 `json:"negative"`
	Overflow uint64 `json:"overflow"`
	HDR      string `json:"hdr"` // HdrHistogram V2, compressed, base64
}

// MarshalJSON encodes the histogram without loss: an object of its exact numbers and the distribution in HdrHistogram's
// compressed V2 encoding.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	if h.count > math.MaxInt64 {
		return nil, errors.New("histogram: more values than the encoding can count")
	}
	encoded, err := h.encode()
	if err != nil {
		return nil, fmt.Errorf("histogram: %w", err)
	}
	return json.Marshal(document{h.count, h.Min(), h.Max(), h.negative, h.overflow, encoded})
}

// UnmarshalJSON decodes what MarshalJSON encoded, and refuses what it cannot have encoded.
func (h *Histogram) UnmarshalJSON(text []byte) error {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	from, err := hdrhistogram.Decode([]byte(d.HDR))
	if err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	decoded, err := fromHDR(from)
	if err != nil {
		return err
	}
	decoded.min, decoded.max, decoded.count, decoded.negative, decoded.overflow = d.Min, d.Max, d.Count, d.Negative, d.Overflow
	if err := decoded.check(uint64(from.TotalCount())); err != nil {
		return err
	}
	*h = *decoded
	return nil
}

// fromHDR is a distribution of the HdrHistogram library, whose extremes are the edges of their buckets.
func fromHDR(from *hdrhistogram.Histogram) (*Histogram, error) {
	if from.LowestTrackableValue() != 1 || from.HighestTrackableValue() != Highest || from.SignificantFigures() != digits {
		return nil, fmt.Errorf("histogram: the layout is %d to %d with %d digits, not 1 to %d with %d",
			from.LowestTrackableValue(), from.HighestTrackableValue(), from.SignificantFigures(), Highest, digits)
	}
	h := &Histogram{min: 0, max: Highest}
	for i, c := range from.Export().Counts {
		if c != 0 {
			*h.bucket(i) = uint64(c)
			h.count += uint64(c)
		}
	}
	h.bound()
	return h, nil
}

// SameDistribution reports whether two distributions have the same values in the same buckets.
func (h *Histogram) SameDistribution(other *Histogram) bool {
	if h.count != other.count {
		return false
	}
	for r := range h.rows {
		if h.rows[r] == nil && other.rows[r] == nil {
			continue
		}
		for c := range rowChunks {
			if *h.rows[r].chunk(c).orEmpty() != *other.rows[r].chunk(c).orEmpty() {
				return false
			}
		}
	}
	return true
}

// check reports whether the exact numbers fit the buckets, which hold total values.
func (h *Histogram) check(total uint64) error {
	if h.count != total {
		return fmt.Errorf("histogram: count %d, but %d values", h.count, total)
	}
	least, greatest := 0, 0 // the buckets of the extremes
	if h.count > 0 {
		least, greatest = h.ends()
	}
	top := h.at(index(Highest))
	switch {
	case h.min < 0 || h.min > h.max || h.max > Highest || index(h.min) != least || index(h.max) != greatest:
		return fmt.Errorf("histogram: min %d and max %d do not fit the values", h.min, h.max)
	case h.overflow > top:
		return fmt.Errorf("histogram: overflow %d, but only %d values that high", h.overflow, top)
	}
	return nil
}
