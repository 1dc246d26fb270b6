package report

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/track"
)

var update = flag.Bool("update", false, "write the golden files anew") //nolint:gochecknoglobals // a flag of the tests

// evenly is a distribution of n values from 1 to n steps.
func evenly(n, step int64) *hist.Histogram {
	h := &hist.Histogram{}
	for i := int64(1); i <= n; i++ {
		h.Record(i * step)
	}
	return h
}

func sample() *load.Result {
	r := &load.Result{Version: load.ResultVersion, Name: "sample", Topics: []load.TopicResult{
		{
			Broker: "kafka://127.0.0.1:9092", Driver: "kafka", Topic: "orders", Confirm: "replicated", OpenLoop: true,
			Info: driver.Info{Server: "kafka 4.3", Client: "franz-go v1.22.2", Nodes: 3},
			Counts: map[string]int64{
				"due": 10000, "sent": 10000, "confirmed": 9990, "received": 9995, "acked": 9995, "blocked": 3, "corrupted": 1,
			},
			Errors: []load.ErrorCount{{Op: "send", Kind: driver.Timeout, Count: 10}},
			Trends: map[string]*hist.Histogram{
				"schedule_lag": evenly(10000, 20), "generator_lag": evenly(10000, 10), "publish_latency": evenly(9990, 1000),
				"publish_time": evenly(9990, 900), "e2e_latency": evenly(9988, 1100), "delivery_wait": evenly(9988, 100), "failed_latency": evenly(10, 3e9),
			},
			Groups: []load.GroupResult{{Accounting: load.Accounting{
				Group: "workers", Lost: 1, Undelivered: 1,
				Tally: track.Tally{Expected: 9990, Received: 9988, Missing: 2, Redelivered: 7, Reordered: 2, Unexpected: 3},
			}}},
		},
		{
			Broker: "embedded:", Driver: "nats-jetstream", Topic: "events", Confirm: "replicated",
			Info:   driver.Info{Server: "nats-server 2.15.2", Embedded: true},
			Counts: map[string]int64{"due": 50, "sent": 50, "confirmed": 50},
			Trends: map[string]*hist.Histogram{"publish_latency": evenly(50, 5000), "publish_time": evenly(50, 5000)},
		},
	}}
	for i := range r.Topics {
		r.Topics[i].Describe()
	}
	r.Judge(load.Circumstances{Dropped: 4})
	return r
}

func TestTextIsAsTheGoldenFile(t *testing.T) {
	var got bytes.Buffer
	if err := Text(&got, sample()); err != nil {
		t.Fatal(err)
	}
	const path = "testdata/text.golden"
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("run the test with -update if this is as it should be:\n%s", got.Bytes())
	}
}

func TestDurationsHaveThreeDigits(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0ns", 999: "999ns", 1000: "1.00µs", 99_949: "99.9µs", 99_960: "100µs", 1_234_567: "1.23ms", 12_345_678: "12.3ms",
		123_456_789: "123ms", 1_500_000_000: "1.50s", 3_600_000_000_000: "3600s",
	} {
		if got := Duration(ns); got != want {
			t.Errorf("%d ns: %s, want %s", ns, got, want)
		}
	}
}
