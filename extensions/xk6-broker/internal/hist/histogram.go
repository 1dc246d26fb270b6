package hist

import (
	"fmt"
	"iter"
	"slices"
)

// Histogram is a distribution of values in nanoseconds. The zero value is empty and ready to use.
// Count, Min and Max are exact; the rest is computed from the buckets, to a thousandth.
// It is not safe for concurrent use while it changes.
type Histogram struct {
	buckets  []bucket // ascending, none of them empty
	count    uint64
	min, max int64 // 0 if there is no value
	negative uint64
	overflow uint64
}

// bucket has the number of values in the bucket of an index.
type bucket struct {
	index int
	count uint64
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
	i, found := slices.BinarySearchFunc(h.buckets, index(v), func(b bucket, i int) int { return b.index - i })
	if !found {
		h.buckets = slices.Insert(h.buckets, i, bucket{index: index(v)})
	}
	h.buckets[i].count += n
	h.include(v, v, n)
}

// include widens the extremes for n more values.
func (h *Histogram) include(low, high int64, n uint64) {
	if h.count == 0 {
		h.min, h.max = low, high
	}
	h.min, h.max = min(h.min, low), max(h.max, high)
	h.count += n
}

// Count returns the number of values, with [Histogram.Overflow] and without
// [Histogram.Negative].
func (h *Histogram) Count() uint64 { return h.count }

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
	var sum float64
	for _, b := range h.buckets {
		v := lowest(b.index)
		sum += (float64(v) + float64(highest(v))) / 2 * float64(b.count)
	}
	return min(max(sum/float64(max(h.count, 1)), float64(h.min)), float64(h.max))
}

// Merge adds all values of another histogram. Nil is empty.
func (h *Histogram) Merge(other *Histogram) {
	if other == nil {
		return
	}
	h.negative += other.negative
	h.overflow += other.overflow
	if other.count == 0 {
		return
	}
	h.include(other.min, other.max, other.count)
	var fresh []bucket
	i := 0
	for _, b := range other.buckets {
		for i < len(h.buckets) && h.buckets[i].index < b.index {
			i++
		}
		if i < len(h.buckets) && h.buckets[i].index == b.index {
			h.buckets[i].count += b.count
		} else {
			fresh = append(fresh, b)
		}
	}
	if len(fresh) > 0 {
		h.buckets = append(h.buckets, fresh...)
		slices.SortFunc(h.buckets, func(a, b bucket) int { return a.index - b.index })
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
	if prev.count > h.count || prev.negative > h.negative || prev.overflow > h.overflow {
		panic(fmt.Sprintf("hist: Sub of a later snapshot: %d values less %d", h.count, prev.count))
	}
	d := &Histogram{negative: h.negative - prev.negative, overflow: h.overflow - prev.overflow, min: h.min, max: h.max}
	rest := prev.buckets
	for _, b := range h.buckets {
		if len(rest) > 0 && rest[0].index == b.index {
			b.count -= rest[0].count
			rest = rest[1:]
		}
		if b.count > 0 {
			d.buckets = append(d.buckets, b)
			d.count += b.count
		}
	}
	d.bound()
	return d
}

// bound draws the extremes in to the buckets of the least and the greatest value.
func (h *Histogram) bound() {
	if h.count == 0 {
		h.min, h.max = 0, 0
		return
	}
	h.min = max(h.min, lowest(h.buckets[0].index))
	h.max = min(h.max, highest(lowest(h.buckets[len(h.buckets)-1].index)))
}

// All gives the distribution in ascending order: each value in nanoseconds, as [Histogram.Quantile]
// returns it, and its count.
func (h *Histogram) All() iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		for _, b := range h.buckets {
			if !yield(min(highest(lowest(b.index)), h.max), b.count) {
				return
			}
		}
	}
}

// SameDistribution reports whether two histograms have the same counts in the same buckets.
func (h *Histogram) SameDistribution(other *Histogram) bool {
	return slices.Equal(h.buckets, other.buckets)
}
