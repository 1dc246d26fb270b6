package hist

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// Recorder is a histogram that many goroutines record into at once, without locks and without allocation once the rows
// it needs exist. It only ever grows: intervals are differences of snapshots, see [Histogram.Sub].
type Recorder struct {
	shards []shard
	mask   uint32
}

// shard is a part of a recorder that one goroutine, or few, write to. Its rows are allocations of whole cache lines, and
// the padding keeps the fields of two shards apart.
type shard struct {
	rows     [rows]atomic.Pointer[[rowLen]atomic.Uint64]
	min, max atomic.Int64
	negative atomic.Uint64
	overflow atomic.Uint64
	_        [128]byte
}

// NewRecorder makes a recorder of at least the given number of shards, rounded up to a power of two. As many shards as
// goroutines that record at the same time are enough; memory is used only by those that are recorded into.
func NewRecorder(shards int) *Recorder {
	n := 1
	if shards > 1 {
		n = 1 << bits.Len(uint(shards-1))
	}
	r := &Recorder{shards: make([]shard, n), mask: uint32(n - 1)}
	for i := range r.shards {
		r.shards[i].min.Store(math.MaxInt64)
		r.shards[i].max.Store(-1)
	}
	return r
}

// Record records one value of v nanoseconds. The shard is any number that differs between goroutines, such as a worker's
// index; goroutines that share one are counted correctly, only slower. A negative v is counted in
// [Histogram.Negative] and kept out of the distribution; a v above [Highest] is recorded as Highest and counted in
// [Histogram.Overflow] too.
func (r *Recorder) Record(shard uint32, v int64) { r.RecordN(shard, v, 1) }

// RecordN records n values of v nanoseconds as [Recorder.Record] does.
func (r *Recorder) RecordN(shard uint32, v int64, n uint64) {
	if n == 0 {
		return
	}
	s := &r.shards[shard&r.mask]
	if v < 0 {
		s.negative.Add(n)
		return
	}
	value := min(v, Highest)
	i := index(value)
	row := s.rows[i>>rowBits].Load()
	if row == nil {
		row = s.grow(i >> rowBits)
	}
	// The extremes are written before the count and read after it, the overflow the other way round, so that a snapshot
	// has no count outside its extremes and no overflow that it did not count.
	for low := s.min.Load(); value < low && !s.min.CompareAndSwap(low, value); low = s.min.Load() {
	}
	for high := s.max.Load(); value > high && !s.max.CompareAndSwap(high, value); high = s.max.Load() {
	}
	row[i&rowMask].Add(n)
	if v > Highest {
		s.overflow.Add(n)
	}
}

// grow gives the shard its row i; the first goroutine to do so wins.
func (s *shard) grow(i int) *[rowLen]atomic.Uint64 {
	s.rows[i].CompareAndSwap(nil, new([rowLen]atomic.Uint64))
	return s.rows[i].Load()
}

// Snapshot is everything recorded so far, by others too where some are given. A value that is being recorded at the same time is in this
// snapshot or in the next one, never in both intervals and never in none.
func (r *Recorder) Snapshot(others ...*Recorder) *Histogram {
	h := &Histogram{min: math.MaxInt64, max: -1}
	r.addTo(h)
	for _, other := range others {
		other.addTo(h)
	}
	h.bound()
	return h
}

func (r *Recorder) addTo(h *Histogram) {
	for k := range r.shards {
		s := &r.shards[k]
		h.negative += s.negative.Load()
		h.overflow += s.overflow.Load()
		for i := range s.rows {
			from := s.rows[i].Load()
			if from == nil {
				continue
			}
			to := h.row(i)
			for j := range from {
				c := from[j].Load()
				to[j] += c
				h.count += c
			}
		}
		h.min = min(h.min, s.min.Load())
		h.max = max(h.max, s.max.Load())
	}
}
