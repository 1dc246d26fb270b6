package account

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// numbers is a set that several goroutines add to.
type numbers interface {
	set(n uint64) bool // whether it is new
	has(n uint64) bool
}

// locked is the library's bitmap for several goroutines: it has none that takes concurrent writes.
type locked struct {
	mu  sync.RWMutex
	all *roaring64.Bitmap
}

func (l *locked) set(n uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.CheckedAdd(n)
}

func (l *locked) has(n uint64) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.all.Contains(n)
}

// BenchmarkBesideRoaring compares the bitmap with the library's behind a lock: adding a number as messages arrive, in order; the same by all processors
// at once; asking for one; and the memory that ten million numbers take of which one in a thousand is missing.
func BenchmarkBesideRoaring(b *testing.B) {
	for _, by := range []struct {
		name  string
		empty func() numbers
	}{
		{"ours", func() numbers { return &bitmap{} }},
		{"library", func() numbers { return &locked{all: roaring64.New()} }},
	} {
		b.Run("set/"+by.name, func(b *testing.B) {
			all, n := by.empty(), uint64(0)
			for b.Loop() {
				all.set(n)
				n++
			}
		})
		b.Run("parallel/"+by.name, func(b *testing.B) {
			all := by.empty()
			var next atomic.Uint64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					all.set(next.Add(1))
				}
			})
		})
		b.Run("has/"+by.name, func(b *testing.B) {
			all, n := by.empty(), uint64(0)
			for i := range uint64(1_000_000) {
				all.set(i * 3)
			}
			for b.Loop() {
				all.has(n % 3_000_000)
				n++
			}
		})
		b.Run("memory/"+by.name, func(b *testing.B) {
			const messages = 10_000_000
			for b.Loop() {
				before, all := heap(), by.empty()
				for i := range uint64(messages) {
					if i%1000 != 0 {
						all.set(i)
					}
				}
				b.ReportMetric(float64(heap()-before)*8/messages, "bits/message")
				runtime.KeepAlive(all)
			}
		})
	}
}

// heap is how many bytes are in use after everything unused was collected.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Both have the same numbers, and so the benchmark compares two that do the same.
func TestBesideRoaring(t *testing.T) {
	ours, theirs := &bitmap{}, &locked{all: roaring64.New()}
	for i := range uint64(100_000) {
		n := i * i % 65_521
		if a, b := ours.set(n), theirs.set(n); a != b {
			t.Fatalf("%d is new: %v, and to the library: %v", n, a, b)
		}
	}
	for n := range uint64(70_000) {
		if ours.has(n) != theirs.has(n) {
			t.Fatalf("%d is in one of them only", n)
		}
	}
}
