package account_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
)

// BenchmarkExpect numbers a message and expects it.
func BenchmarkExpect(b *testing.B) {
	p := account.NewTopic().Producer(1)
	b.ReportAllocs()
	for b.Loop() {
		p.Expect(p.Next())
	}
}

// numbered is a producer that has numbered more messages than any benchmark reads, and a group that expects them.
func numbered() (*account.Topic, *account.Group) {
	topic := account.NewTopic()
	p := topic.Producer(1)
	for range 50_000_000 {
		p.Next()
	}
	return topic, topic.Group("workers", true)
}

func BenchmarkReceived(b *testing.B) {
	topic, group := numbered()
	for _, c := range []struct {
		name   string
		seq    func(i uint64) uint64
		settle bool
	}{
		{"in order", func(i uint64) uint64 { return i }, false},
		{"settled too", func(i uint64) uint64 { return i }, true},
		// Each from another page than the last, 64 pages in turn.
		{"across pages", func(i uint64) uint64 { return i/(64*8192)*(64*8192) + i%64*8192 + i/64%8192 }, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			group := topic.Group(fmt.Sprint(c.name, b.N), true)
			reader := group.Reader()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range uint64(b.N) {
				seq := c.seq(i % 50_000_000)
				reader.Received(1, seq, int32(seq%4), 1)
				if c.settle {
					reader.Settled(1, seq)
				}
			}
		})
	}
	b.Run("parallel", func(b *testing.B) {
		var next atomic.Uint64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			reader := group.Reader()
			for pb.Next() {
				reader.Received(1, next.Add(1)%50_000_000, 0, 1)
			}
		})
	})
}

// BenchmarkOutstanding asks as a drain does, every 1000 messages, near the end of a long run in which one in 1000 was lost.
func BenchmarkOutstanding(b *testing.B) {
	topic := account.NewTopic()
	p := topic.Producer(1)
	group := topic.Group("workers", true)
	reader := group.Reader()
	thousand := func() {
		for range 1000 {
			seq := p.Next()
			p.Expect(seq)
			if seq%1000 != 0 {
				reader.Received(1, seq, 0, 1)
			}
		}
	}
	for range 20_000 {
		thousand()
	}
	for b.Loop() {
		b.StopTimer()
		thousand()
		b.StartTimer()
		group.Outstanding()
	}
}

// BenchmarkSettledN settles in runs of 64; a run is what is counted.
func BenchmarkSettledN(b *testing.B) {
	topic, _ := numbered()
	reader := topic.Group(fmt.Sprint("runs", b.N), true).Reader()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range uint64(b.N) {
		reader.SettledN(1, i*64%49_000_000, 64)
	}
}
