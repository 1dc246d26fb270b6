package hist

import (
	"fmt"
	"iter"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram is a distribution of values in nanoseconds. The zero value is empty and ready to use.
// Count, Min and Max are exact; the rest is computed from the buckets, to a thousandth.
// It is not safe for concurrent use while it changes.
type Histogram struct {
	sparse   *hdrhistogram.PackedHistogram // nil if there is no value
	min, max int64                         // 0 if there is no value
}

// Record adds one value of v nanoseconds, as [Recorder.Record] does.
func (h *Histogram) Record(v int64) { h.RecordN(v, 1) }

// RecordN adds n values of v nanoseconds.
func (h *Histogram) RecordN(v int64, n uint64) {
	if n == 0 || v < 0 {
		return
	}
	v = min(v, Highest)
	h.include(v, v)
	h.add(v, n)
}

// add adds n values to the bucket of v.
func (h *Histogram) add(v int64, n uint64) {
	if h.sparse == nil {
		h.sparse = hdrhistogram.NewPacked(1, Highest, digits)
	}
	if err := h.sparse.RecordValues(v, int64(n)); err != nil { //gosec:disable G115 -- the library checks the count
		panic("hist: " + err.Error())
	}
}

// include widens the extremes.
func (h *Histogram) include(low, high int64) {
	if h.sparse == nil {
		h.min, h.max = low, high
	}
	h.min, h.max = min(h.min, low), max(h.max, high)
}

// Count returns the number of values.
func (h *Histogram) Count() uint64 {
	if h.sparse == nil {
		return 0
	}
	return uint64(h.sparse.TotalCount()) //gosec:disable G115 -- a count
}

// Min returns the exact least value in nanoseconds, 0 if there is none.
func (h *Histogram) Min() int64 { return h.min }

// Max returns the exact greatest value in nanoseconds, 0 if there is none.
func (h *Histogram) Max() int64 { return h.max }

// Mean returns the arithmetic mean in nanoseconds, 0 if there is no value.
func (h *Histogram) Mean() float64 {
	if h.sparse == nil {
		return 0
	}
	return min(max(h.sparse.Mean(), float64(h.min)), float64(h.max))
}

// Merge adds all values of another histogram. Nil is empty.
func (h *Histogram) Merge(other *Histogram) {
	if other == nil || other.sparse == nil {
		return
	}
	h.include(other.min, other.max)
	if h.sparse == nil {
		h.sparse = other.sparse.Clone()
	} else {
		h.sparse.Merge(other.sparse)
	}
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
	if prev.Count() > h.Count() {
		panic(fmt.Sprintf("hist: Sub of a later snapshot: %d values less %d", h.Count(), prev.Count()))
	}
	d := &Histogram{}
	for v, n := range h.buckets() {
		if prev.sparse != nil {
			n -= uint64(prev.sparse.CountAtValue(v)) //gosec:disable G115 -- a count
		}
		if n > 0 {
			d.add(v, n)
		}
	}
	d.bound(h.min, h.max)
	return d
}

// bound sets the extremes: exact ones that lie in the buckets of the least and the greatest value,
// and otherwise the edges of these buckets.
func (h *Histogram) bound(low, high int64) {
	if h.sparse != nil {
		h.min, h.max = max(low, h.sparse.Min()), min(high, h.sparse.Max())
	}
}

// buckets gives the least value of each bucket, in ascending order, and its count.
func (h *Histogram) buckets() iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		if h.sparse != nil {
			h.sparse.ForEachBucket(func(v, n int64) bool { return yield(v, uint64(n)) }) //gosec:disable G115 -- a count
		}
	}
}

// All gives the distribution in ascending order: each value in nanoseconds, as [Histogram.Quantile]
// returns it, and its count.
func (h *Histogram) All() iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		h.buckets()(func(v int64, n uint64) bool { return yield(min(highest(v), h.max), n) })
	}
}
