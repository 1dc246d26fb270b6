package hist_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// locked is the library's histogram for several goroutines: it has none that takes concurrent writes.
type locked struct {
	mu sync.Mutex
	h  *hdrhistogram.Histogram
}

func (l *locked) record(_ uint32, v int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.h.RecordValue(v); err != nil {
		panic(err)
	}
}

// ofLibrary is a histogram of the library's that holds what ours do.
func ofLibrary() *locked { return &locked{h: hdrhistogram.New(1, hist.Highest, 3)} }

// values around a millisecond, as latencies are.
func values() []int64 {
	r := rand.New(rand.NewPCG(1, 1))
	all := make([]int64, 1<<12)
	for i := range all {
		all[i] = int64(1e6 * (0.2 + r.ExpFloat64()))
	}
	return all
}

// BenchmarkBesideHdrHistogram compares the recorder with the library's histogram behind a lock: a record by one goroutine, one by all processors at
// once, what is new in an interval of a thousand values, and the memory that the first thousand values take.
func BenchmarkBesideHdrHistogram(b *testing.B) {
	all := values()
	ours, theirs := hist.NewRecorder(8), ofLibrary()
	for _, by := range []struct {
		name   string
		record func(shard uint32, v int64)
	}{{"ours", ours.Record}, {"library", theirs.record}} {
		b.Run("record/"+by.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				by.record(0, all[i%len(all)])
			}
		})
		b.Run("parallel/"+by.name, func(b *testing.B) {
			var shards atomic.Uint32
			b.RunParallel(func(pb *testing.PB) {
				shard := shards.Add(1)
				for i := 0; pb.Next(); i++ {
					by.record(shard, all[i%len(all)])
				}
			})
		})
	}
	b.Run("interval/ours", func(b *testing.B) {
		recorder, last := hist.NewRecorder(1), &hist.Histogram{}
		for b.Loop() {
			for _, v := range all[:1000] {
				recorder.Record(0, v)
			}
			now := recorder.Snapshot()
			now.Sub(last)
			last = now
		}
	})
	b.Run("interval/library", func(b *testing.B) {
		recorder := ofLibrary()
		for b.Loop() {
			for _, v := range all[:1000] {
				recorder.record(0, v)
			}
			recorder.mu.Lock()
			recorder.h.Clone()
			recorder.h.Reset()
			recorder.mu.Unlock()
		}
	})
	b.Run("memory/ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			recorder := hist.NewRecorder(1)
			for _, v := range all[:1000] {
				recorder.Record(0, v)
			}
		}
	})
	b.Run("memory/library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			recorder := ofLibrary()
			for _, v := range all[:1000] {
				recorder.record(0, v)
			}
		}
	})
}
