//gosec:disable G115 -- counts, which are not negative and below both limits
package hist

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram is a distribution of values in nanoseconds. The zero value is empty and ready to use.
// Count, Min and Max are exact; the rest is computed from the buckets, to a thousandth.
// It is not safe for concurrent use while it changes.
type Histogram struct {
	sparse   *hdrhistogram.PackedHistogram // nil if it is empty
	min, max int64                         // if it is not empty
	negative uint64
	overflow uint64
}

// none has no values and is not changed.
var none = hdrhistogram.NewPacked(1, Highest, digits)

// hdr returns the distribution for reading.
func (h *Histogram) hdr() *hdrhistogram.PackedHistogram {
	if h.sparse == nil {
		return none
	}
	return h.sparse
}

// Record adds one value of v nanoseconds, as [Recorder.Record] does.
func (h *Histogram) Record(v int64) { h.RecordN(v, 1) }

// RecordN adds n values of v nanoseconds.
func (h *Histogram) RecordN(v int64, n uint64) {
	if n == 0 {
		return
	}
	if v < 0 {
		h.negative += n
		return
	}
	if v > Highest {
		h.overflow += n
		v = Highest
	}
	h.include(v, v)
	h.add(v, int64(n))
}

// include widens the extremes. It is called before the values are added.
func (h *Histogram) include(low, high int64) {
	if h.Count() == 0 {
		h.min, h.max = low, high
	}
	h.min, h.max = min(h.min, low), max(h.max, high)
}

// add adds n values to the bucket of v.
func (h *Histogram) add(v, n int64) {
	if h.sparse == nil {
		h.sparse = none.Clone()
	}
	if err := h.sparse.RecordValues(v, n); err != nil {
		panic("hist: " + err.Error()) // more values than an int64 can count
	}
}

// Count returns the number of values, with [Histogram.Overflow] and without
// [Histogram.Negative].
func (h *Histogram) Count() uint64 { return uint64(h.hdr().TotalCount()) }

// Negative returns the number of negative values. They are not in the distribution.
func (h *Histogram) Negative() uint64 { return h.negative }

// Overflow returns the number of values above [Highest], which were recorded as Highest.
func (h *Histogram) Overflow() uint64 { return h.overflow }

// Min returns the exact least value in nanoseconds, 0 if there is none.
func (h *Histogram) Min() int64 { return h.min }

// Max returns the exact greatest value in nanoseconds, 0 if there is none.
func (h *Histogram) Max() int64 { return h.max }

// Mean returns the arithmetic mean in nanoseconds, 0 if there is no value.
func (h *Histogram) Mean() float64 {
	return min(max(h.hdr().Mean(), float64(h.min)), float64(h.max))
}

// Merge adds all values of another histogram. Nil is empty.
func (h *Histogram) Merge(other *Histogram) {
	if other == nil {
		return
	}
	h.negative += other.negative
	h.overflow += other.overflow
	if other.Count() == 0 {
		return
	}
	h.include(other.min, other.max)
	if h.sparse == nil {
		h.sparse = none.Clone()
	}
	h.sparse.Merge(other.sparse)
}

// Merged returns a with all values of b. Either can be nil. It changes a.
func Merged(a, b *Histogram) *Histogram {
	if b == nil {
		return a
	}
	if a == nil {
		a = &Histogram{}
	}
	a.Merge(b)
	return a
}

// Sub returns the values recorded between two snapshots of one [Recorder]. A nil prev is empty. Min
// and Max are exact if they are extremes of the run too, and otherwise the edges of their buckets.
// Sub panics if prev is later than h.
func (h *Histogram) Sub(prev *Histogram) *Histogram {
	if prev == nil {
		prev = &Histogram{}
	}
	if prev.Count() > h.Count() || prev.negative > h.negative || prev.overflow > h.overflow {
		panic(fmt.Sprintf("hist: Sub of a later snapshot: %d values less %d", h.Count(), prev.Count()))
	}
	d := &Histogram{negative: h.negative - prev.negative, overflow: h.overflow - prev.overflow, min: h.min, max: h.max}
	type bucket struct{ value, count int64 }
	earlier := make([]bucket, 0, prev.hdr().Populated()+1)
	for v, n := range prev.hdr().ForEachBucket {
		earlier = append(earlier, bucket{v, n})
	}
	earlier = append(earlier, bucket{value: -1}) // after the last
	k := 0
	for v, n := range h.hdr().ForEachBucket {
		if earlier[k].value == v {
			n -= earlier[k].count
			k++
		}
		if n != 0 {
			d.add(v, n)
		}
	}
	d.bound()
	return d
}

// bound draws the extremes in to the buckets of the least and the greatest value.
func (h *Histogram) bound() {
	if h.Count() == 0 {
		h.min, h.max = 0, 0
		return
	}
	h.min, h.max = max(h.min, h.sparse.Min()), min(h.max, h.sparse.Max())
}

// All gives the distribution in ascending order: each value in nanoseconds, as [Histogram.Quantile]
// returns it, and its count.
func (h *Histogram) All() iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		for v, n := range h.hdr().ForEachBucket {
			if !yield(min(highest(v), h.max), uint64(n)) {
				return
			}
		}
	}
}

// SameDistribution reports whether two histograms have the same counts in the same buckets.
func (h *Histogram) SameDistribution(other *Histogram) bool {
	return bytes.Equal(h.encode(), other.encode())
}
