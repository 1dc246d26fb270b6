// Package hist records latencies as complete distributions: HDR histograms of int64 nanoseconds,
// three significant digits from 1 ns to 1 h.
//
// A [Recorder] counts without locks and without allocation. A [Histogram] is a snapshot of it, and a
// [Packed] is one in HdrHistogram's compressed V2 encoding. All have HdrHistogram's buckets
// (http://hdrhistogram.org).
package hist

import (
	"math/bits"
	"time"
)

// Highest is the greatest value of a histogram in nanoseconds. Greater values are recorded as
// Highest and counted in [Histogram.Overflow].
const Highest = int64(time.Hour)

// The first 2,048 buckets are one nanosecond wide. The buckets of each 1,024 after them are twice
// as wide as those before, so that no bucket is wider than a thousandth of its values.
const (
	digits    = 3
	rowBits   = 10
	rows      = 33 // up to Highest
	chunkBits = 6
	chunkLen  = 1 << chunkBits // buckets that a recorder allocates together
	chunks    = rows << rowBits / chunkLen
)

// shift returns the binary logarithm of the width of v's bucket.
func shift(v int64) int {
	return bits.Len64(uint64(v)|(2<<rowBits-1)) - (rowBits + 1) //gosec:disable G115 -- not negative
}

// index returns the number of the bucket that holds v, for 0 <= v <= Highest.
func index(v int64) int {
	s := shift(v)
	return s<<rowBits + int(v>>s)
}

// lowest returns the least value of bucket i.
func lowest(i int) int64 {
	s := max(i>>rowBits-1, 0)
	return int64(i-s<<rowBits) << s
}

// highest returns the greatest value of v's bucket.
func highest(v int64) int64 { return v | (int64(1)<<shift(v) - 1) }
