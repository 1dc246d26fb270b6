package result

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/track"
)

func TestHowFarAProducerHadCome(t *testing.T) {
	index := []Mark{{At: 10, Seen: 10, Next: 0}, {At: 20, Seen: 40, Next: 100}, {At: 50, Seen: 50, Next: 300}}
	for at, want := range map[int64][2]uint64{5: {0, 0}, 10: {0, 0}, 11: {0, 100}, 20: {100, 100}, 40: {100, 100}, 41: {100, 300}, 50: {300, 300}, 51: {300, 400}} {
		if least, most := handedOut(index, at, 400); least != want[0] || most != want[1] {
			t.Errorf("at %d: %d to %d, want %d to %d", at, least, most, want[0], want[1])
		}
	}
}

// The broker took a while to say what it has, and a producer sent on: what it had sent when the answer was there may be in it.
func TestWhatWasSentBeforeTheAnswerIsNoLeftover(t *testing.T) {
	sending, receiving := track.NewTopic(), track.NewTopic()
	receiving.Share()
	p, reader := sending.Producer(1), receiving.Group("workers", track.Earliest).Reader()
	for range 200 {
		seq := p.Next()
		p.Expect(seq)
		reader.Received(1, seq, 0, 1)
	}
	producer, consumer := &Ledger{Instance: 1}, &Ledger{Instance: 2}
	w := &wholeTopic{producers: sending.Ledger().Producers, senders: map[uint64]sender{1: {
		by: producer, next: 200, index: []Mark{{At: 10, Seen: 10}, {At: 1000, Seen: 1000, Next: 100}, {At: 2000, Seen: 2000, Next: 200}},
	}}}
	producer.Clock, consumer.Clock = "one", "one"
	g := GroupLedger{
		GroupLedger: receiving.Ledger().Groups[0], Kept: true, Earliest: true, There: []Presence{{900, math.MaxInt64}}, Leftovers: 150, Looked: 1500,
	}
	if n := w.leftovers([]groupShare{{&g, consumer}}); n != 0 {
		t.Errorf("%d are of nobody", n)
	}
	g.Looked = 950
	if n := w.leftovers([]groupShare{{&g, consumer}}); n != 50 {
		t.Errorf("%d are of nobody, want 50", n)
	}
}

func TestWhatABacklogSaysOfTheMissing(t *testing.T) {
	for _, c := range []struct {
		missing, sure, possible      uint64
		Waiting, strange             int64
		lost, undelivered, uncertain uint64
	}{
		{0, 0, 0, 50, 10, 0, 0, 0},
		{100, 100, 100, 100, 0, 0, 100, 0},
		{100, 100, 100, 70, 0, 30, 70, 0},
		{100, 100, 100, 70, 20, 30, 50, 20},
		{100, 100, 100, 70, 90, 30, 0, 70},
		{100, 100, 100, -5, 0, 100, 0, 0},
		{100, 40, 60, 30, 0, 10, 30, 60},
		{100, 40, 60, 90, 0, 0, 60, 40},
		{100, 0, 0, 90, 0, 0, 0, 100},
	} {
		said := Waiting{Backlog: Backlog{Messages: c.Waiting}, Strange: c.strange}
		lost, undelivered, uncertain := Divide(c.missing, c.sure, c.possible, said)
		if lost != c.lost || undelivered != c.undelivered || uncertain != c.uncertain {
			t.Errorf("%+v: lost %d, undelivered %d, uncertain %d", c, lost, undelivered, uncertain)
		}
	}
}

// Four processes, each with a producer of 2.5 million messages and a member of the group, which gets each message that falls to it by
// chance: the worst there is for what a ledger takes.
func BenchmarkMergeOfTenMillionMessages(b *testing.B) {
	const processes, messages = 4, 2_500_000
	for _, producers := range []int{1, 1000} { // of each process
		b.Run(fmt.Sprintf("%d_producers", processes*producers), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 1)) // the same numbers each time is what it is for
			parts := make([]Part, processes)
			topics := make([]*track.Topic, processes)
			readers := make([]*track.Reader, processes)
			for i := range topics {
				topics[i] = track.NewTopic()
				topics[i].Share()
				readers[i] = topics[i].Group("workers", track.Earliest).Reader()
			}
			for i := range topics {
				for n := range producers {
					p := topics[i].Producer(uint64(i+1)<<32 | uint64(n))
					for range messages / producers {
						seq := p.Next()
						p.Expect(seq)
						reader := readers[random.IntN(processes)]
						reader.Received(p.ID(), seq, 0, 1)
						reader.Settled(p.ID(), seq)
					}
				}
			}
			var size int
			files := make([][]byte, processes)
			for i, topic := range topics {
				known := topic.Ledger()
				l := &Ledger{Version: LedgerVersion, Instance: uint32(i + 1), Clock: "one", Topics: []TopicLedger{{
					Driver: "memory", Topic: "orders", Producers: known.Producers, Groups: []GroupLedger{{
						GroupLedger: known.Groups[0], Kept: true, Earliest: true, There: []Presence{{0, math.MaxInt64}}, Asked: 1e9,
					}},
				}}}
				var text bytes.Buffer
				if err := l.Write(&text); err != nil {
					b.Fatal(err)
				}
				size += text.Len()
				files[i] = text.Bytes()
				parts[i].Result = &Result{Name: fmt.Sprint(i), Instance: uint32(i + 1), Seconds: 10, Topics: []Topic{{
					Driver: "memory", Topic: "orders", Trends: map[string]*hist.Histogram{},
				}}}
			}
			b.ReportAllocs()
			var before, after runtime.MemStats
			var most uint64
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := range parts {
					var err error
					if parts[i].Ledger, err = ReadLedger(bytes.NewReader(files[i])); err != nil {
						b.Fatal(err)
					}
				}
				r, err := Merge(parts, Siblings{Processes: processes})
				if err != nil {
					b.Fatal(err)
				}
				if a := r.Topics[0].Groups[0]; a.Expected != processes*messages || a.Received != a.Expected || a.Missing != 0 {
					b.Fatalf("%+v", a)
				}
				runtime.ReadMemStats(&after)
				most = max(most, after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))
			}
			b.ReportMetric(float64(size)*8/(processes*messages), "ledger_bits/message")
			b.ReportMetric(float64(most)/(1<<20), "heap_MiB")
		})
	}
}
