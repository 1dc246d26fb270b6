package hist_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

func TestConcurrentRecordsAreAllInExactlyOneInterval(t *testing.T) {
	const goroutines, each = 8, 300_000
	recorder := hist.NewRecorder(2) // fewer shards than goroutines, so that some share one
	parts := make([]*hist.Histogram, goroutines)
	var done atomic.Bool
	var recording, watching sync.WaitGroup
	for g := range goroutines {
		recording.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 0))
			parts[g] = &hist.Histogram{}
			for i := range int64(each) {
				var v int64
				if g%2 == 0 {
					v = r.Int64N(1<<r.IntN(43)) - 1 // all over the place
				} else {
					v = i % 2 // where others record at the same time, in the same shard
				}
				recorder.Record(uint32(g), v)
				parts[g].Record(v)
			}
		})
	}
	intervals := &hist.Histogram{}
	watching.Go(func() {
		var prev *hist.Histogram
		for last := false; !last; {
			last = done.Load()
			now := recorder.Snapshot()
			interval := now.Sub(prev)
			intervals.Merge(interval)
			prev = now
		}
	})
	recording.Wait()
	done.Store(true)
	watching.Wait()
	want := &hist.Histogram{}
	for _, part := range parts {
		want.Merge(part)
	}
	if !equal(recorder.Snapshot(), want) {
		t.Error("the last snapshot is not what was recorded")
	}
	if !same(intervals, want) {
		t.Error("the intervals do not make up what was recorded")
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	recorder := hist.NewRecorder(2)
	v := int64(0)
	record := func() {
		recorder.Record(uint32(v), v%100_000)
		v += 997
	}
	for range 1000 {
		record()
	}
	if n := testing.AllocsPerRun(1000, record); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	recorder := hist.NewRecorder(1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		recorder.Record(0, int64(i*7919)&0xfffff)
	}
}

func BenchmarkRecordParallel(b *testing.B) {
	recorder := hist.NewRecorder(8)
	var shards atomic.Uint32
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		shard := shards.Add(1)
		for i := 0; pb.Next(); i++ {
			recorder.Record(shard, int64(i*7919)&0xfffff)
		}
	})
}

// latencies records a million values around a millisecond, on 4 shards.
func latencies() *hist.Recorder {
	recorder := hist.NewRecorder(4)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range uint32(1_000_000) {
		recorder.Record(i, int64(1e6*(0.2+r.ExpFloat64())))
	}
	return recorder
}

func BenchmarkSnapshot(b *testing.B) {
	recorder := latencies()
	for b.Loop() {
		recorder.Snapshot()
	}
}

func BenchmarkSub(b *testing.B) {
	recorder := latencies()
	prev := recorder.Snapshot()
	recorder.Record(0, 1_000_000)
	now := recorder.Snapshot()
	for b.Loop() {
		now.Sub(prev)
	}
}

func BenchmarkQuantile(b *testing.B) {
	h := latencies().Snapshot()
	for b.Loop() {
		h.Quantile(0.999)
	}
}
