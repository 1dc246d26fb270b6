// Package hist records latencies as complete distributions: HDR histograms of int64 nanoseconds, three significant
// digits from 1 ns to 1 h, without locks and without allocation on the recording side.
//
// The bucket layout is that of HdrHistogram (http://hdrhistogram.org) with a lowest value of 1, a highest of 1 h and
// 3 significant digits, so that histograms can be written for, and read by, the tools of that family.
//
// hdrhistogram-go reads the files and writes .hgrm. What records is not its histogram, and BenchmarkBesideHdrHistogram shows why: on two CPUs a record takes 12 ns where
// the library's, which needs a lock beside other goroutines, takes 52 ns; by two goroutines at once 9 ns where it takes 25 ns. A thousand latencies around a
// millisecond take 44 KiB of memory, and of the library's 264 KiB. What is new since the last second takes 88 µs, by the library's Clone and Reset 109 µs.
package hist

import (
	"math/bits"
	"time"
)

// Highest is the greatest value that a histogram tells apart, in nanoseconds. Greater ones are recorded as Highest and
// counted in [Histogram.Overflow].
const Highest = int64(time.Hour)

// The layout: a row holds 1024 buckets. Rows 0 and 1 have buckets one nanosecond wide, and the buckets of each row after
// them are twice as wide as those of the row before, so that a bucket is never wider than a thousandth of its values.
const (
	digits  = 3
	rowBits = 10
	rowLen  = 1 << rowBits
	rowMask = rowLen - 1
	rows    = 33 // enough for Highest
)

// The memory: a row is allocated in chunks of 64 buckets, so that few values take little memory.
const (
	chunkBits = 6
	chunkLen  = 1 << chunkBits
	chunkMask = chunkLen - 1
	rowChunks = rowLen / chunkLen
)

// chunkOf returns the row of bucket i and the chunk of that row that holds it.
func chunkOf(i int) (row, chunk int) { return i >> rowBits, i & rowMask >> chunkBits }

// index is the number of the bucket that holds v, for 0 <= v <= Highest.
func index(v int64) int {
	shift := bits.Len64(uint64(v)|(2*rowLen-1)) - (rowBits + 1) //gosec:disable G115 -- bits, no number
	return shift<<rowBits + int(v>>shift)
}

// lowest is the least value of bucket i.
func lowest(i int) int64 {
	shift := max(i>>rowBits-1, 0)
	return int64(i-shift<<rowBits) << shift
}

// highest is the greatest value of bucket i.
func highest(i int) int64 {
	return lowest(i) + int64(1)<<max(i>>rowBits-1, 0) - 1
}
