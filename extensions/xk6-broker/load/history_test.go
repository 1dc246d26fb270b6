package load

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/faulty"
)

// The points of the history and the lines of the logs add up to the totals, and the queues show what nobody received.
func TestTheHistoryAddsUpToTheTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, faulty.Config{})
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
		topic := collector.Result().Topics[0]
		if len(topic.History) != 5 {
			t.Fatalf("%d points, want 5", len(topic.History))
		}
		var sent int64
		var latencies uint64
		for i, p := range topic.History {
			sent += p.Counts["sent"]
			latencies += p.Latencies["publish_latency"].Count
			if want := []uint64{100, 300, 600, 1000, 0}[i]; p.Outstanding != want {
				t.Errorf("point %d: outstanding %d, want %d", i, p.Outstanding, want)
			}
			if want := []int64{100, 300, 600, 1000, 0}[i]; p.Backlog["workers"] != want {
				t.Errorf("point %d: backlog %v, want %d", i, p.Backlog, want)
			}
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
			if log.Trend == PublishLatency {
				latencies -= inLog(t, log.Text)
			}
		}
		if latencies != 0 {
			t.Errorf("the log holds %d latencies less than there were", int64(latencies))
		}
	})
}

func inLog(t *testing.T, text []byte) (values uint64) {
	t.Helper()
	reader := hdrhistogram.NewHistogramLogReader(bytes.NewReader(text))
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			return values
		}
		values += uint64(h.TotalCount())
	}
}
