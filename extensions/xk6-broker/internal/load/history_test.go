package load

import (
	"bytes"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/payload"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// The points of the history and the lines of the logs add up to the totals, and the queues show what nobody received.
func TestTheHistoryAddsUpToTheTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		b.consumer(driver.ConsumerConfig{Group: "workers"}) // reads at the end only
		s := b.sender(100)
		for n := range uint64(4) {
			b.produce(s, 100*(n+1))
			b.run.Backlogs(t.Context())
			time.Sleep(time.Second)
			collector.Collect()
		}
		b.finish()
		collector.Collect()
		topic := resultOf(t, collector).Topics[0]
		if len(topic.History) != 5 {
			t.Fatalf("%d points, want 5", len(topic.History))
		}
		var sent int64
		var latencies uint64
		for i, p := range topic.History {
			sent += p.Counts["sent"]
			if want := []uint64{100, 300, 600, 1000, 0}[i]; p.Outstanding != want {
				t.Errorf("point %d: outstanding %d, want %d", i, p.Outstanding, want)
			}
			if want := []int64{100, 300, 600, 1000, 0}[i]; p.Backlog["workers"] != want {
				t.Errorf("point %d: backlog %v, want %d", i, p.Backlog, want)
			}
		}
		for _, s := range topic.OverTime["publish_latency"] {
			latencies += s.Count
		}
		if sent != 1000 || latencies != 1000 {
			t.Errorf("sent %d, latencies %d, want 1000 of each", sent, latencies)
		}
		for _, percentile := range topic.Percentiles["publish_latency"] {
			if want := topic.Trends["publish_latency"].Quantile(percentile.Q); percentile.Value != want {
				t.Errorf("p(%v) %d, want %d", percentile.Q, percentile.Value, want)
			}
		}
		for _, log := range collector.Logs() {
			if log.Trend == metric.PublishLatency {
				latencies -= inLog(t, log)["closed"]
			}
		}
		if latencies != 0 {
			t.Errorf("the log holds %d latencies less than there were", int64(latencies))
		}
	})
}

// inLog gives how many values a log holds under each tag.
func inLog(t *testing.T, log result.IntervalLog) map[string]uint64 {
	t.Helper()
	var text bytes.Buffer
	if err := log.Write(&text); err != nil {
		t.Fatal(err)
	}
	values := map[string]uint64{}
	reader := hdrhistogram.NewHistogramLogReader(&text)
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			return values
		}
		values[h.Tag()] += uint64(h.TotalCount())
	}
}

// Where a topic has several groups, a log tells them apart, whatever their names are, and the loops too.
func TestLogsTellGroupsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, memory.Config{})
		collector := b.run.NewCollector()
		consumers := map[string]*Consumer{}
		s := b.sender(100)
		open := func(group string) {
			labels := b.series.Labels
			labels.Group = group
			c, err := b.run.NewConsumer(t.Context(), b.conn, b.topic,
				driver.ConsumerConfig{Topic: "orders", Group: group, Prefetch: 100, Start: driver.StartNew}, b.run.Series(labels))
			if err != nil {
				t.Fatal(err)
			}
			consumers[group] = c
		}
		open("audit")
		b.produce(s, 5)
		b.receive(consumers["audit"], 5)
		time.Sleep(time.Second)
		collector.Collect()
		open("or, ders")
		b.produce(s, 50)
		if _, err := (Produce{Schedule: constant(10, time.Second), Payload: payload.Spec{Size: payload.Fixed(64)}}).Run(t.Context(), []*Sender{s}); err != nil {
			t.Fatal(err)
		}
		b.receive(consumers["audit"], 60)
		b.receive(consumers["or, ders"], 40)
		time.Sleep(time.Second)
		collector.Collect()
		b.finish()
		for _, log := range collector.Logs() {
			var want map[string]uint64
			switch log.Trend {
			case metric.PublishLatency:
				want = map[string]uint64{"": 10, "closed": 55}
			case metric.E2ELatency:
				want = map[string]uint64{"closed": 5, "audit": 10, "closed:audit": 50, "closed:or__ders": 40}
			default:
				continue
			}
			if got := inLog(t, log); !maps.Equal(got, want) {
				t.Errorf("%v: %v, want %v", log.Trend, got, want)
			}
		}
	})
}

// A group that is declared to begin with the earliest message is waited for from the start, not only once its first consumer opens.
func TestWhatWaitsForADeclaredGroupIsOutstanding(t *testing.T) {
	for start, want := range map[driver.Start][]uint64{
		driver.StartEarliest: {100, 200, 300, 0},
		driver.StartNew:      {0, 0, 100, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, memory.Config{})
			collector := b.run.NewCollector()
			for range 3 { // by each VU
				b.topic.Declare("workers", start)
				b.topic.Declare("", start) // a subscriber, which nothing is kept for
			}
			s := b.sender(100)
			for n := range 3 {
				if n == 2 {
					b.consumer(driver.ConsumerConfig{Group: "workers", Start: start})
				}
				b.produce(s, 100)
				time.Sleep(time.Second)
				collector.Collect()
			}
			b.finish()
			collector.Collect()
			points := resultOf(t, collector).Topics[0].History
			if len(points) != len(want) {
				t.Fatalf("%d points, want %d", len(points), len(want))
			}
			for i, p := range points {
				if p.Outstanding != want[i] {
					t.Errorf("start %v, point %d: outstanding %d, want %d", start, i, p.Outstanding, want[i])
				}
			}
		})
	}
}
