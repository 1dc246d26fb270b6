package hist

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A record raises the maximum, or lowers the minimum, before it counts the value. This is a snapshot taken in between.
func TestSnapshotAmidARecordFitsItself(t *testing.T) {
	r := NewRecorder(1)
	r.Record(0, 5000)
	r.shards[0].Load().min.Store(1)
	r.shards[0].Load().max.Store(9_000_000)
	before := r.Snapshot()
	if before.Min() != lowest(index(5000)) || before.Max() != highest(index(5000)) || before.Quantile(1) != before.Max() {
		t.Errorf("of the value 5000, the snapshot tells %d to %d", before.Min(), before.Max())
	}
	r.Record(0, 1)
	r.Record(0, 9_000_000)
	after := r.Snapshot()
	if interval := after.Sub(before); after.Min() != 1 || after.Max() != 9_000_000 || interval.Min() != 1 || interval.Max() != 9_000_000 {
		t.Errorf("the snapshot after it tells %d to %d, the interval %d to %d",
			after.Min(), after.Max(), interval.Min(), interval.Max())
	}
}

// What is written is, byte for byte, what the library writes, and a line of a log takes little new memory.
func TestLog_Lines_AsTheLibrarys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	from, to := time.UnixMilli(1_700_000_000_123), time.UnixMilli(1_700_000_001_124)
	for _, values := range []int{0, 1, 2, 100, 100_000} {
		h := &Histogram{}
		for range values {
			h.RecordN(random.Int64N(1<<random.IntN(43)), 1+random.Uint64N(1000))
		}
		var ours, theirs bytes.Buffer
		log, err := NewLog(&ours, from)
		if err != nil {
			t.Fatal(err)
		}
		ours.Reset()
		if err := log.Write("a", from, to, h); err != nil {
			t.Fatal(err)
		}
		of := h.HDR()
		of.SetTag("a")
		of.SetStartTimeMs(from.UnixMilli())
		of.SetEndTimeMs(to.UnixMilli())
		if err := hdrhistogram.NewHistogramLogWriter(&theirs).OutputIntervalHistogram(of); err != nil {
			t.Fatal(err)
		}
		if ours.String() != theirs.String() {
			t.Errorf("%d values:\n%.200s\nwant\n%.200s", values, ours.String(), theirs.String())
		}
	}
	few := &Histogram{}
	for range 5 {
		few.Record(random.Int64N(1_000_000))
	}
	log := &Log{&strings.Builder{}}
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			log.w.(*strings.Builder).Reset()
			if err := log.Write("", from, to, few); err != nil {
				b.Fatal(err)
			}
		}
	})
	if most := int64(16 << 10); r.AllocedBytesPerOp() > most {
		t.Errorf("a line takes %d bytes of new memory, want at most %d", r.AllocedBytesPerOp(), most)
	}
}
