package hist

import (
	"fmt"
	"iter"
	"math"
)

// Histogram is a distribution of values in nanoseconds. Its zero value is empty and ready to use, and small: chunks of
// buckets come into being as values need them. It is not safe for concurrent use while it changes; a [Recorder] is.
//
// Count, Min and Max are exact. Everything else is computed from the buckets and within a thousandth of the truth.
type Histogram struct {
	rows     [rows]*row
	count    uint64
	min, max int64 // meaningful where count > 0
	negative uint64
	overflow uint64
}

// row is a row of buckets; a nil chunk is empty.
type row [rowChunks]*chunk

type chunk [chunkLen]uint64

// empty is read in the place of a chunk that is nil.
var empty chunk

// orEmpty returns the chunk, or an empty one if it is nil, which must not be changed.
func (c *chunk) orEmpty() *chunk {
	if c == nil {
		return &empty
	}
	return c
}

// chunk returns chunk j of the row, nil if it is empty.
func (r *row) chunk(j int) *chunk {
	if r == nil {
		return nil
	}
	return r[j]
}

// Record adds one value of v nanoseconds; what is outside 0 to [Highest] is treated as by [Recorder.Record].
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
	i := index(v)
	*h.bucket(i) += n
	h.include(v, v, n)
}

// bucket returns bucket i, and allocates its chunk if need be.
func (h *Histogram) bucket(i int) *uint64 {
	r, c := chunkOf(i)
	return &h.chunk(r, c)[i&chunkMask]
}

// at returns the count of bucket i.
func (h *Histogram) at(i int) uint64 {
	r, c := chunkOf(i)
	return h.rows[r].chunk(c).orEmpty()[i&chunkMask]
}

// chunk returns a chunk of a row, and allocates it if need be.
func (h *Histogram) chunk(r, c int) *chunk {
	if h.rows[r] == nil {
		h.rows[r] = new(row)
	}
	if h.rows[r][c] == nil {
		h.rows[r][c] = new(chunk)
	}
	return h.rows[r][c]
}

// include widens the extremes for n more values between low and high.
func (h *Histogram) include(low, high int64, n uint64) {
	if h.count == 0 {
		h.min, h.max = low, high
	} else {
		h.min, h.max = min(h.min, low), max(h.max, high)
	}
	h.count += n
}

// Count is how many values the distribution holds: those of [Histogram.Overflow] included, those of
// [Histogram.Negative] not.
func (h *Histogram) Count() uint64 { return h.count }

// Negative is how many negative values were recorded. They are not in the distribution.
func (h *Histogram) Negative() uint64 { return h.negative }

// Overflow is how many of the values were above [Highest] and recorded as it.
func (h *Histogram) Overflow() uint64 { return h.overflow }

// Min is the exact least value in nanoseconds, 0 where there is none.
func (h *Histogram) Min() int64 {
	if h.count == 0 {
		return 0
	}
	return h.min
}

// Max is the exact greatest value in nanoseconds, 0 where there is none.
func (h *Histogram) Max() int64 {
	if h.count == 0 {
		return 0
	}
	return h.max
}

// Mean is the arithmetic mean in nanoseconds, 0 where there is no value.
func (h *Histogram) Mean() float64 {
	if h.count == 0 {
		return 0
	}
	var sum float64
	for i, c := range h.buckets() {
		sum += middle(i) * float64(c)
	}
	return min(max(sum/float64(h.count), float64(h.min)), float64(h.max))
}

// StdDev is the standard deviation of the values from their mean in nanoseconds, 0 where there is no value.
func (h *Histogram) StdDev() float64 {
	if h.count == 0 {
		return 0
	}
	var sum float64
	mean := h.Mean()
	for i, c := range h.buckets() {
		d := middle(i) - mean
		sum += d * d * float64(c)
	}
	return math.Sqrt(sum / float64(h.count))
}

// middle is the value that stands for bucket i in sums.
func middle(i int) float64 { return (float64(lowest(i)) + float64(highest(i))) / 2 }

// Merge adds all that other holds. Nil is taken as empty.
func (h *Histogram) Merge(other *Histogram) {
	if other == nil {
		return
	}
	h.negative += other.negative
	h.overflow += other.overflow
	if other.count == 0 {
		return
	}
	for r, from := range other.rows {
		if from == nil {
			continue
		}
		for c, counts := range from {
			if counts == nil {
				continue
			}
			to := h.chunk(r, c)
			for i, n := range counts {
				to[i] += n
			}
		}
	}
	h.include(other.min, other.max, other.count)
}

// Sub is what was recorded between prev and h, two snapshots of one [Recorder]; a nil prev is taken as empty. Min and Max
// of the interval are exact where the interval holds the extreme of the whole run, and else are the edges of their
// buckets. Sub panics if prev is not earlier than h, for there is no such interval.
func (h *Histogram) Sub(prev *Histogram) *Histogram {
	if prev == nil {
		prev = &Histogram{}
	}
	d := &Histogram{
		negative: less(h.negative, prev.negative), overflow: less(h.overflow, prev.overflow),
		min: h.min, max: h.max,
	}
	for r := range h.rows {
		if h.rows[r] == nil && prev.rows[r] == nil {
			continue
		}
		for c := range rowChunks {
			now, then := h.rows[r].chunk(c).orEmpty(), prev.rows[r].chunk(c).orEmpty()
			if *now == *then {
				continue // a chunk without news costs the interval nothing
			}
			to := d.chunk(r, c)
			for i := range to {
				to[i] = less(now[i], then[i])
				d.count += to[i]
			}
		}
	}
	d.bound()
	return d
}

// less is a-b of two counts that only grow.
func less(a, b uint64) uint64 {
	if a < b {
		panic(fmt.Sprintf("hist: Sub of a later snapshot: %d < %d", a, b))
	}
	return a - b
}

// bound draws the extremes in to the least and greatest bucket that is not empty.
func (h *Histogram) bound() {
	if h.count == 0 {
		h.min, h.max = 0, 0
		return
	}
	least, greatest := h.ends()
	h.min, h.max = max(h.min, lowest(least)), min(h.max, highest(greatest))
}

// ends gives the numbers of the least and the greatest bucket that is not empty; there must be one.
func (h *Histogram) ends() (least, greatest int) {
	least = -1
	for i := range h.buckets() {
		if least < 0 {
			least = i
		}
		greatest = i
	}
	return least, greatest
}

// buckets gives the number and count of each bucket that is not empty, ascending.
func (h *Histogram) buckets() iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		for r, row := range h.rows {
			if row == nil {
				continue
			}
			for c, counts := range row {
				if counts == nil {
					continue
				}
				for i, n := range counts {
					if n != 0 && !yield(r<<rowBits+c<<chunkBits+i, n) {
						return
					}
				}
			}
		}
	}
}

// All gives the distribution in ascending order: each value in nanoseconds, as [Histogram.Quantile] reports it, and how
// many there are of it.
func (h *Histogram) All() iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		for i, c := range h.buckets() {
			if !yield(min(highest(i), h.max), c) {
				return
			}
		}
	}
}

// Merged is a with all that b holds; either may be nil. A is changed, b is not.
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
