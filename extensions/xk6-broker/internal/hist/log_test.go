package hist_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

func TestHGRM(t *testing.T) {
	h := &hist.Histogram{}
	r := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		h.Record(int64(r.ExpFloat64() * 2e6))
	}
	var text bytes.Buffer
	if err := h.WriteHGRM(&text, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	lines, last := 0, -1.0
	for line := range strings.Lines(text.String()) {
		fields := strings.Fields(line)
		if len(fields) != 4 || strings.HasPrefix(line, "#") {
			continue
		}
		var numbers [3]float64
		for i := range numbers {
			n, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				break
			}
			numbers[i] = n
		}
		value, percentile, total := numbers[0], numbers[1], numbers[2]
		if total == 0 {
			continue // the heading
		}
		lines++
		if value < last {
			t.Errorf("the values descend: %s", line)
		}
		last = value
		// The line says how many values there are up to this one, which is rounded to a microsecond.
		var least, most float64
		for v, c := range h.All() {
			if ms := float64(v) / 1e6; ms <= value-0.0005 {
				least += float64(c)
				most += float64(c)
			} else if ms <= value+0.0005 {
				most += float64(c)
			}
		}
		if total < least || total > most || percentile > total/float64(h.Count())+1e-6 {
			t.Errorf("%g to %g values up to %g, but the line says %s", least, most, value, line)
		}
	}
	if lines < 50 || !strings.Contains(text.String(), "Total count    =       100000]") {
		t.Errorf("not a complete distribution:\n%s", text.String())
	}
	if err := h.WriteHGRM(broken{}, time.Second); !errors.Is(err, errBroken) {
		t.Errorf("error %v of a broken writer", err)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestLogIsReadBackByHdrHistogram(t *testing.T) {
	start := time.Date(2024, 5, 6, 7, 8, 9, 250e6, time.UTC)
	var text bytes.Buffer
	log, err := hist.NewLog(&text, start)
	if err != nil {
		t.Fatal(err)
	}
	type interval struct {
		tag string
		h   *hist.Histogram
	}
	var written []interval
	r := rand.New(rand.NewPCG(2, 2))
	for i := range 10 {
		for _, tag := range []string{"", "publish_latency", "e2e_latency"} {
			h := &hist.Histogram{}
			for range r.IntN(1000) * i {
				h.Record(int64(r.ExpFloat64() * 1e6))
			}
			at := start.Add(time.Duration(i) * time.Second)
			if err := log.Write(tag, at, at.Add(time.Second), h); err != nil {
				t.Fatal(err)
			}
			written = append(written, interval{tag, h})
		}
	}
	if want := "#[Histogram log format version 1.3]\n#[StartTime: 1714979289.250 (seconds since epoch), 2024-05-06T07:08:09Z]\n"; !strings.HasPrefix(text.String(), want) {
		t.Errorf("the log begins\n%.150s", text.String())
	}
	reader := hdrhistogram.NewHistogramLogReader(&text)
	for i, w := range written {
		got, err := reader.NextIntervalHistogram()
		if err != nil || got == nil {
			t.Fatalf("interval %d: %v, %v", i, got, err)
		}
		begin := start.Add(time.Duration(i/3) * time.Second).UnixMilli()
		if !same(decoded(got), w.h) || got.Tag() != w.tag || math.Abs(float64(got.StartTimeMs()-begin)) > 1 ||
			math.Abs(float64(got.EndTimeMs()-begin-1000)) > 1 {
			t.Errorf("interval %d comes back as %q from %d to %d", i, got.Tag(), got.StartTimeMs(), got.EndTimeMs())
		}
	}
	if got, err := reader.NextIntervalHistogram(); got != nil || err != nil {
		t.Errorf("after the last interval: %v, %v", got, err)
	}
}

// decoded is the library's histogram as ours.
func decoded(got *hdrhistogram.Histogram) *hist.Histogram {
	h := &hist.Histogram{}
	for _, bar := range got.Distribution() {
		h.RecordN(bar.From, uint64(bar.Count)) //gosec:disable G115 -- a count
	}
	return h
}

func TestLog_BrokenWriter_Error(t *testing.T) {
	if _, err := hist.NewLog(broken{}, time.Now()); !errors.Is(err, errBroken) {
		t.Errorf("error %v of a broken writer", err)
	}
}
