package hist

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// Recorder is a histogram that many goroutines record into, without locks, and without allocation
// after its chunks exist. It only grows: an interval is the difference of two snapshots.
//
// It begins with one shard and doubles them when a bucket becomes busy, where goroutines may wait
// for one another.
type Recorder struct {
	shards []atomic.Pointer[shard]
	mask   atomic.Uint32 // the number of shards in use, less 1
}

// busy is the number of values in a bucket, for each shard in use, that doubles the shards.
const busy = 64

// shard is the part of a recorder that few goroutines write to. Its chunks are whole cache lines,
// and the padding keeps the fields of two shards apart.
type shard struct {
	chunks   [chunks]atomic.Pointer[chunk]
	min, max atomic.Int64
	_        [128]byte
}

// chunk has the counts of neighbouring buckets.
type chunk [chunkLen]atomic.Uint64

// NewRecorder makes a recorder of at least so many shards, rounded up to a power of two. One for
// each goroutine that records at the same time is enough. Unused shards take no memory.
func NewRecorder(shards int) *Recorder {
	n := 1
	if shards > 1 {
		n = 1 << bits.Len(uint(shards-1))
	}
	return &Recorder{shards: make([]atomic.Pointer[shard], n)}
}

// Record records one value of v nanoseconds. The shard is any number that differs X
func (r *Recorder) Record(shard uint32, v int64) { r.RecordN(shard, v, 1) }

// RecordN records n values of v nanoseconds.
func (r *Recorder) RecordN(shard uint32, v int64, n uint64) {
	if n == 0 || v < 0 {
		return
	}
	mask := r.mask.Load()
	s := r.shards[shard&mask].Load()
	if s == nil {
		s = r.grow(shard & mask)
	}
	v = min(v, Highest)
	i := index(v)
	counts := s.chunks[i>>chunkBits].Load()
	if counts == nil {
		counts = s.grow(i / chunkLen)
	}
	// The extremes are written before the count and read after it: no count is outside of them.
	for low := s.min.Load(); v < low && !s.min.CompareAndSwap(low, v); low = s.min.Load() {
	}
	for high := s.max.Load(); v > high && !s.max.CompareAndSwap(high, v); high = s.max.Load() {
	}
	if counts[i&(chunkLen-1)].Add(n) >= busy*uint64(mask+1) && int(mask) < len(r.shards)-1 {
		r.mask.CompareAndSwap(mask, 2*mask+1)
	}
}

// grow makes shard k. The first goroutine wins.
func (r *Recorder) grow(k uint32) *shard {
	s := &shard{}
	s.min.Store(math.MaxInt64)
	s.max.Store(-1)
	r.shards[k].CompareAndSwap(nil, s)
	return r.shards[k].Load()
}

// grow makes chunk c. The first goroutine wins.
func (s *shard) grow(c int) *chunk {
	s.chunks[c].CompareAndSwap(nil, new(chunk))
	return s.chunks[c].Load()
}

// Snapshot returns all values so far, also of other recorders. A value that is recorded at
// the same time is in this snapshot or in the next one.
func (r *Recorder) Snapshot(others ...*Recorder) *Histogram {
	var shards []*shard
	for _, from := range append([]*Recorder{r}, others...) {
		for k := range from.shards {
			if s := from.shards[k].Load(); s != nil {
				shards = append(shards, s)
			}
		}
	}
	h := &Histogram{}
	for c := range chunks {
		h.addChunk(c, shards)
	}
	low, high := int64(math.MaxInt64), int64(-1)
	for _, s := range shards {
		low, high = min(low, s.min.Load()), max(high, s.max.Load())
	}
	h.bound(low, high)
	return h
}

// addChunk adds the values of chunk c of all shards. Chunks are added in ascending order.
func (h *Histogram) addChunk(c int, shards []*shard) {
	var sums [chunkLen]uint64
	found := false
	for _, s := range shards {
		if from := s.chunks[c].Load(); from != nil {
			found = true
			for i := range from {
				sums[i] += from[i].Load()
			}
		}
	}
	if !found {
		return
	}
	for i, n := range sums {
		if n > 0 {
			h.add(lowest(c*chunkLen+i), n)
		}
	}
}
