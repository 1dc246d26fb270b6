package account_test

import (
	"runtime"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

const mebi = 1 << 20

// heap is how many bytes are in use after everything unused was collected.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestHundredMillion accounts for that many messages of one producer, and holds the memory against what Memory tells and
// against its bounds.
func TestHundredMillion(t *testing.T) {
	if testing.Short() || raced {
		t.Skip("part of make test-full")
	}
	const messages = 100_000_000
	for _, c := range []struct {
		name       string
		lost       uint64 // one in so many; 0 is none
		failed     uint64 // sends in so many that are never confirmed nor arrive; 0 is none
		partitions uint64 // read one after another, a long stretch of each
		most       int64  // bytes; a bitmap with a hole in every page takes 15 MiB, and there are three
	}{
		{"in order", 0, 0, 1, 2 * mebi},
		{"four partitions", 0, 0, 4, 2 * mebi},
		{"one in 1000 lost from four partitions", 1000, 0, 4, 2 * 15 * mebi},
		{"one send in 500 failed", 0, 500, 1, 3 * 15 * mebi},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := heap()
			topic := account.NewTopic()
			p := topic.Producer(1)
			group := topic.Group("workers", true)
			reader := group.Reader()
			const stretch = 100_000
			var lost, failed uint64
			arrives := func(seq uint64) bool {
				return (c.lost == 0 || seq%c.lost != 0) && (c.failed == 0 || seq%c.failed != 0)
			}
			for first := uint64(0); first < messages; first += stretch {
				for range uint64(stretch) {
					seq := p.Next()
					if c.failed != 0 && seq%c.failed == 0 {
						failed++
						continue
					}
					p.Expect(seq)
					if !arrives(seq) {
						lost++
					}
				}
				for partition := range c.partitions {
					for seq := first + partition; seq < first+stretch; seq += c.partitions {
						if !arrives(seq) {
							continue
						}
						if v := reader.Received(1, seq, int32(partition), 1); v != account.First {
							t.Fatalf("message %d is %v", seq, v)
						}
						reader.Settled(1, seq)
					}
				}
				if n := group.Outstanding(); n != lost {
					t.Fatalf("%d outstanding, want %d", n, lost)
				}
			}
			want := account.Tally{Expected: messages - failed, Missing: lost, Received: messages - failed - lost}
			want.Settled = want.Received
			if got := group.Tally(); got != want {
				t.Errorf("\n got %+v\nwant %+v", got, want)
			}
			used := heap() - before
			t.Logf("%.1f MiB on the heap", float64(used)/mebi)
			if used > c.most*5/4+mebi { // the allocator rounds up
				t.Errorf("%d bytes on the heap, want at most %d", used, c.most)
			}
			runtime.KeepAlive(topic)
		})
	}
}

// TestManyProducersAreSmall is the other extreme: each of many virtual users is a producer of a few messages.
func TestManyProducersAreSmall(t *testing.T) {
	const producers = 5000
	before := heap()
	topic := account.NewTopic()
	reader := topic.Group("workers", true).Reader()
	for id := range uint64(producers) {
		p := topic.Producer(id)
		for range 10 {
			seq := p.Next()
			p.Expect(seq)
			reader.Received(id, seq, 0, 1)
			reader.Settled(id, seq)
		}
	}
	if used := heap() - before; used > 6*1024*producers {
		t.Errorf("%d bytes for %d producers", used, producers)
	}
	runtime.KeepAlive(topic)
}
