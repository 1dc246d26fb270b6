package load

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason/reasontest"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// someSeconds are what a run measures of a trend, in seconds that differ.
func someSeconds() []*hist.Histogram {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]*hist.Histogram, 7)
	for n := range all {
		all[n] = &hist.Histogram{}
		for range 5000 {
			all[n].Record(1<<20 + r.Int64N(1<<20))
		}
	}
	return all
}

// Six hours at 5,000 messages a second is some hundred points that add up to it, each with the percentiles of its own interval, in bounded
// memory.
func TestALongTestStaysSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	const whole = 6 * 60 * 60
	measures := []trendKey{{metric.Closed, metric.E2ELatency}}
	load := someSeconds()
	line := newTimeline(1)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for s := range int64(whole) {
		i := &interval{from: s * int64(time.Second), to: (s + 1) * int64(time.Second), inFlight: s % 50, outstanding: uint64(s % 50), cpu: 0.25}
		if s%2 == 0 {
			i.cpu = 0.35
		}
		i.counts[metric.Due], i.counts[metric.Sent], i.counts[metric.Received] = 5000, 5000, 10000
		if s%1000 == 7 {
			i.errors = map[driver.Kind]int64{driver.Timeout: 3}
		}
		i.backlog = map[string]int64{"audit": s % 10, "orders": s % 20}
		trends := map[trendKey]*hist.Histogram{}
		for k, m := range measures {
			trends[m] = load[(int(s)+k)%len(load)]
		}
		line.add(i, trends)
		if len(line.intervals) > mostIntervals {
			t.Fatalf("%d intervals after %d s", len(line.intervals), s)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 30<<20 {
		t.Errorf("it takes %d MiB", grown>>20)
	}
	all := line.all()
	points, summaries := history(all, 0, newEdges().of(topicKey{}), nil), overTime(all, 0, true)
	const length = 64.0 // the least power of two that makes 640 points or fewer of it
	var sent, errors int64
	for n, p := range points {
		if p.Seconds != length && n < len(points)-1 || p.At > whole || p.InFlight != 49 && n < len(points)-1 || p.Backlog["orders"] != 19 || p.Outstanding != 49 {
			t.Fatalf("point %d: %+v", n, p)
		}
		if p.CPU < 0.299 || p.CPU > 0.301 || p.Busiest < 0.309 || p.Busiest > 0.311 {
			t.Fatalf("point %d: cpu %v, busiest %v", n, p.CPU, p.Busiest)
		}
		sent += p.Counts["sent"]
		errors += p.ErrorKinds["timeout"]
	}
	if sent != 5000*whole || errors != 3*22 || points[len(points)-1].At != whole {
		t.Errorf("sent %d, errors %d, the end at %v", sent, errors, points[len(points)-1].At)
	}
	for k, m := range measures {
		s := 0
		for n, got := range summaries[m.trend.In(m.loop)] {
			want := &hist.Histogram{}
			for ; s < int(got.At); s++ {
				want.Merge(load[(s+k)%len(load)])
			}
			if got.Count != want.Count() || got.P50 != want.Quantile(0.5) || got.P99 != want.Quantile(0.99) || got.P999 != want.Quantile(0.999) ||
				got.Max != want.Max() || got.Seconds != length && got.At != whole {
				t.Fatalf("%v, interval %d: %+v", m.trend, n, got)
			}
		}
		if s != whole {
			t.Errorf("%v ends after %d s", m.trend, s)
		}
	}
}

// However many collections there are, nothing is lost, everything is in order, and all intervals but the last are of one length.
func TestTheTimelineAddsUpAtAnyTime(t *testing.T) {
	for _, most := range []int{2, 7, 50} {
		line := newTimeline(1)
		line.most = most
		for n := range int64(3000) {
			i := &interval{from: n, to: n + 1}
			i.counts[metric.Sent] = n
			line.add(i, nil)
			if len(line.intervals) > most {
				t.Fatalf("%d intervals after %d", len(line.intervals), n)
			}
			var sum, at int64
			all := line.all()
			for _, i := range all {
				if i.from != at {
					t.Fatalf("after %d: an interval from %d follows one to %d", n, i.from, at)
				}
				at = i.to
				sum += i.counts[metric.Sent]
			}
			if at != n+1 || sum != n*(n+1)/2 {
				t.Fatalf("after %d: up to %d, sent %d", n, at, sum)
			}
			for k, i := range all[:len(all)-1] {
				if i.to-i.from != all[0].to-all[0].from {
					t.Fatalf("after %d: interval %d is of %d, the first of %d", n, k, i.to-i.from, all[0].to-all[0].from)
				}
			}
		}
	}
	for n, want := range map[int]int{1: 640, 4: 640, 8: 320, 1000: 64} {
		if most := newTimeline(n).most; most != want {
			t.Errorf("the %d-th topic has %d intervals, want %d", n, most, want)
		}
	}
}

// The distribution over time is told in intervals that have a p99, where the run is long enough for that.
func TestIntervalsAreLongEnoughForAP99(t *testing.T) {
	for _, c := range []struct {
		rate, seconds, want int
	}{{10_000, 60, 1}, {1001, 60, 1}, {999, 60, 2}, {200, 100, 8}, {200, 60, 1}, {50, 60, 2}, {10, 600, 16}, {1, 5, 1}, {5, 3, 1}} {
		counts := make([]uint64, c.seconds+4)
		for s := range c.seconds {
			counts[s+2] = uint64(c.rate)
		}
		counts[2], counts[c.seconds+1] = counts[2]/2, counts[c.seconds+1]/2
		if got := result.LengthFor(counts); got != c.want {
			t.Errorf("%d/s for %d s: %d s, want %d", c.rate, c.seconds, got, c.want)
		}
	}
	stalled := make([]uint64, 100)
	for s := range stalled {
		if s < 40 || s > 60 {
			stalled[s] = 5000
		}
	}
	if got := result.LengthFor(stalled); got != 1 {
		t.Errorf("a stall, in which nothing is measured, makes intervals of %d s", got)
	}
}

// A log that is spooled comes back whole, and the file has no name that could be left behind.
func TestLogsAreSpooled(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	load := someSeconds()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		b.produce(b.sender(100), 1)
		collector := b.run.NewCollector()
		defer collector.Close()
		key := topicKey{b.topic.Address.String(), "orders"}
		const intervals = 200
		for n := range intervals {
			for _, trend := range []metric.Trend{metric.PublishLatency, metric.E2ELatency} {
				collector.logs.write(key, trend, "", int64(n), int64(n+1), load[n%len(load)])
			}
			if err := collector.logs.settle(int64(n)); err != nil {
				t.Fatal(err)
			}
			for _, log := range collector.logs.of[key] {
				if log.text.Len() > 2*logBlock {
					t.Fatalf("%d bytes are in memory", log.text.Len())
				}
			}
		}
		if collector.logs.spool.size < 3*logBlock {
			t.Errorf("only %d bytes were spooled", collector.logs.spool.size)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("files %v, %v", left, err)
		}
		logs := collector.Logs()
		if len(logs) != 2 {
			t.Fatalf("%d logs", len(logs))
		}
		for _, log := range logs {
			if n := inLog(t, log)[""]; n != 5000*intervals {
				t.Errorf("%v: %d values", log.Trend, n)
			}
		}
		b.finish()
	})
}

// Where the disk is full the logs end, all at the same interval, and say so; the run goes on.
func TestAFullDiskEndsTheLogsOnly(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there is no /dev/full:", err)
	}
	load := someSeconds()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		defer collector.Close()
		var told []error
		collector.LogsCut = func(err error) { told = append(told, err) }
		key := topicKey{b.topic.Address.String(), "orders"}
		collector.logs.spool.file = full
		written := 0
		for n := range 100 {
			if collector.logs.cut == nil {
				written++
			}
			for _, trend := range []metric.Trend{metric.PublishLatency, metric.PublishTime} {
				collector.logs.write(key, trend, "", int64(n), int64(n+1), load[n%len(load)])
			}
			b.produce(b.sender(10), 10)
			time.Sleep(time.Second)
			collector.Collect()
		}
		if len(told) != 1 || !errors.Is(told[0], syscall.ENOSPC) || written < 10 || written == 100 {
			t.Fatalf("told %v, written %d", told, written)
		}
		for _, log := range collector.Logs() {
			var text bytes.Buffer
			if err := log.Write(&text); err != nil {
				t.Fatal(err)
			}
			last := text.String()[strings.LastIndex(strings.TrimSpace(text.String()), "\n")+1:]
			if log.Trend <= metric.PublishTime && (inLog(t, log)[""] != uint64(5000*written) || !strings.HasPrefix(last, "#[the interval logs (.hlog) end after ")) {
				t.Errorf("%v: %d values in %d intervals, and at last %s", log.Trend, inLog(t, log)[""], written, last)
			}
		}
		b.finish()
		collector.Collect()
		r := resultOf(t, collector)
		r.Judge(result.Circumstances{})
		if r.Topics[0].Counts["sent"] != 1000 || r.Topics[0].History[99].Counts["sent"] != 10 {
			t.Errorf("sent %d", r.Topics[0].Counts["sent"])
		}
		if !reasontest.Has(r.Verdict.Notes(), "over-time why=log-ended") {
			t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
		}
	})
}
