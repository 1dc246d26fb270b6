package hist

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// Recorder is a histogram that many goroutines record into at once, without locks and without allocation once the chunks
// it needs exist. It only ever grows: intervals are differences of snapshots, see [Histogram.Sub].
//
// It begins with one shard, and uses twice as many each time a bucket becomes busy: goroutines may wait for one another
// there.
type Recorder struct {
	shards []atomic.Pointer[shard]
	mask   atomic.Uint32 // the number of shards in use, less 1
}

// busy is how many values for each shard in use make a bucket busy.
const busy = 64

// shard is a part of a recorder that one goroutine, or few, write to. Its chunks are allocations of whole cache lines, and
// the padding keeps the fields of two shards apart.
type shard struct {
	chunks   [rows * rowChunks]atomic.Pointer[shardChunk]
	min, max atomic.Int64
	negative atomic.Uint64
	overflow atomic.Uint64
	_        [128]byte
}

type shardChunk [chunkLen]atomic.Uint64

// NewRecorder makes a recorder of at least the given number of shards, rounded up to a power of two. As many shards as
// goroutines that record at the same time are enough; memory is used only by those that are recorded into.
func NewRecorder(shards int) *Recorder {
	n := 1
	if shards > 1 {
		n = 1 << bits.Len(uint(shards-1))
	}
	return &Recorder{shards: make([]atomic.Pointer[shard], n)}
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
	mask := r.mask.Load()
	s := r.shards[shard&mask].Load()
	if s == nil {
		s = r.grow(shard & mask)
	}
	if v < 0 {
		s.negative.Add(n)
		return
	}
	value := min(v, Highest)
	i := index(value)
	counts := s.chunks[i>>chunkBits].Load()
	if counts == nil {
		counts = s.grow(i >> chunkBits)
	}
	// The extremes are written before the count and read after it, the overflow the other way round, so that a snapshot
	// has no count outside its extremes and no overflow that it did not count.
	for low := s.min.Load(); value < low && !s.min.CompareAndSwap(low, value); low = s.min.Load() {
	}
	for high := s.max.Load(); value > high && !s.max.CompareAndSwap(high, value); high = s.max.Load() {
	}
	if counts[i&chunkMask].Add(n) >= busy*uint64(mask+1) && int(mask) < len(r.shards)-1 {
		r.mask.CompareAndSwap(mask, 2*mask+1)
	}
	if v > Highest {
		s.overflow.Add(n)
	}
}

// grow gives the recorder shard k; the first goroutine to do so wins.
func (r *Recorder) grow(k uint32) *shard {
	s := &shard{}
	s.min.Store(math.MaxInt64)
	s.max.Store(-1)
	r.shards[k].CompareAndSwap(nil, s)
	return r.shards[k].Load()
}

// grow gives the shard chunk c; the first goroutine to do so wins.
func (s *shard) grow(c int) *shardChunk {
	s.chunks[c].CompareAndSwap(nil, new(shardChunk))
	return s.chunks[c].Load()
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
		if s := r.shards[k].Load(); s != nil {
			s.addTo(h)
		}
	}
}

func (s *shard) addTo(h *Histogram) {
	h.negative += s.negative.Load()
	h.overflow += s.overflow.Load()
	for c := range s.chunks {
		from := s.chunks[c].Load()
		if from == nil {
			continue
		}
		to := h.chunk(c/rowChunks, c%rowChunks)
		for i := range from {
			n := from[i].Load()
			to[i] += n
			h.count += n
		}
	}
	h.min = min(h.min, s.min.Load())
	h.max = max(h.max, s.max.Load())
}
