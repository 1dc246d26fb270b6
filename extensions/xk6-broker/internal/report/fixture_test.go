package report_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// stalled is a run of 20 s at 1000 messages per second on a broker that answered nothing from 8 s to 10 s, always the same.
func stalled() *result.Result {
	return stalledFrom(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
}

// measurement is what the stalled run measured.
type measurement struct {
	history  []result.Point
	overTime map[string][]result.Summary
	trends   map[string]*hist.Histogram
	recorded *recording.Recording
}

// copied is a copy that a test may change.
func (m measurement) copied() measurement {
	c := measurement{history: slices.Clone(m.history), overTime: map[string][]result.Summary{}, trends: map[string]*hist.Histogram{}, recorded: m.recorded}
	for i := range c.history {
		p := &c.history[i]
		p.Counts, p.ErrorKinds, p.Backlog = maps.Clone(p.Counts), maps.Clone(p.ErrorKinds), maps.Clone(p.Backlog)
	}
	for name, h := range m.trends {
		c.overTime[name], c.trends[name] = slices.Clone(m.overTime[name]), hist.Merged(&hist.Histogram{}, h)
	}
	return c
}

// measurements has a measurement for each start of a run.
var measurements sync.Map

// measuredFrom makes a measurement up once for each start, as that takes a while, and returns a copy.
func measuredFrom(started time.Time) measurement {
	if m, ok := measurements.Load(started); ok {
		return m.(measurement).copied()
	}
	m := measurement{history: []result.Point{}, overTime: map[string][]result.Summary{}, trends: map[string]*hist.Histogram{}, recorded: &recording.Recording{}}
	random := rand.New(rand.NewPCG(1, 2)) // the same numbers each time is what it is for
	add := func(h map[string]*hist.Histogram, name string, ns int64) {
		if h[name] == nil {
			h[name] = &hist.Histogram{}
		}
		h[name].Record(ns)
	}
	waiting := int64(0)
	for second := range int64(20) {
		interval := map[string]*hist.Histogram{}
		p := result.Point{At: float64(second + 1), Seconds: 1, CPU: 0.2, Busiest: 0.2, Counts: map[string]int64{"due": 1000, "sent": 1000}}
		frozen := second == 8 || second == 9
		if second == 9 {
			p.Errors, p.ErrorKinds = 10, map[string]int64{"timeout": 10}
		}
		if waiting += 1000; !frozen {
			p.Counts["confirmed"], p.Counts["received"] = waiting, waiting
			for i := range waiting {
				served := int64(random.ExpFloat64() * 2e5)
				lag := int64(random.ExpFloat64() * 2e4)
				waited := int64(0)
				if waiting > 1000 && i < 2000 { // these were due while nothing was answered
					waited = (2000 - i) * int64(time.Millisecond)
				}
				add(interval, "schedule_lag", lag)
				add(interval, "generator_lag", lag)
				add(interval, "publish_time", waited+served)
				add(interval, "publish_latency", lag+waited+served)
				add(interval, "e2e_time", waited+served+5e4)
				add(interval, "e2e_latency", lag+waited+served+5e4)
			}
			waiting = 0
		}
		p.InFlight, p.Outstanding, p.Backlog = waiting, uint64(waiting/10), map[string]int64{"workers": waiting / 20}
		for name, h := range interval {
			for int64(len(m.overTime[name])) < second { // nothing was measured then
				m.overTime[name] = append(m.overTime[name], result.Summary{At: float64(len(m.overTime[name]) + 1), Seconds: 1})
			}
			m.overTime[name] = append(m.overTime[name], result.Summary{
				At: p.At, Seconds: 1,
				Count: h.Count(), P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max(),
			})
			if m.trends[name] == nil {
				m.trends[name] = &hist.Histogram{}
			}
			m.trends[name].Merge(h)
		}
		m.recorded.Add(intervalOf(started, p, interval))
		m.history = append(m.history, p)
	}
	measurements.Store(started, m)
	return m.copied()
}

// intervalOf is the interval of a recording that has what a point has.
func intervalOf(started time.Time, p result.Point, trends map[string]*hist.Histogram) *recording.Interval {
	send := recording.Record{Key: recording.Key{Broker: jetstream, Driver: "nats-jetstream", Topic: stalledTopic}}
	receive := send
	receive.Group, receive.Outstanding = "workers", p.Outstanding
	backlog := p.Backlog["workers"]
	receive.Backlog = &backlog
	send.Counts[recording.Due], send.Counts[recording.Sent], send.Counts[recording.Confirmed] = p.Counts["due"], p.Counts["sent"], p.Counts["confirmed"]
	receive.Counts[recording.Received], receive.Counts[recording.Acked] = p.Counts["received"], p.Counts["received"]
	for name, h := range trends {
		trend, _ := recording.TrendNamed(name)
		of := &send
		if trend.Consumers() {
			of = &receive
		}
		of.Latencies[recording.Open][trend] = h.Pack()
	}
	if p.Errors > 0 {
		send.Errors = recording.Errors{{Op: "send", Kind: "timeout"}: p.Errors}
	}
	end := started.Add(time.Duration(p.At * float64(time.Second)))
	return &recording.Interval{
		From: end.Add(-time.Second).UnixNano(), To: end.UnixNano(), InFlight: p.InFlight, CPU: p.CPU, Busiest: p.Busiest,
		Records: []recording.Record{send, receive},
	}
}

// The topic of the stalled run.
const (
	jetstream    = "jetstream://127.0.0.1:4222"
	stalledTopic = "orders/</script>"
)

func stalledFrom(started time.Time) *result.Result {
	m := measuredFrom(started)
	t := result.Topic{
		Broker: jetstream, Driver: "nats-jetstream", Topic: stalledTopic, Confirm: "replicated", Proofs: []result.Proof{{Confirm: "replicated", How: "acks=all, 3 replicas, min.insync.replicas 2"}}, OpenLoop: true,
		Info: result.Server{Server: "nats-server 2.15.2", Client: "nats.go 1.53.1", Nodes: 1},
		Options: result.Uses{
			"producer": {{"ackTimeout": "30s", "password": "***"}}, "consumer": {{"maxAckPending": 1e6, "group": "workers", "tags": []any{"a", "b"}}},
			"produce": {{"stages": []any{map[string]any{"target": 1000.0, "duration": "20s"}}}}, "topic": {{"partitions": 6.0, "replicas": 3.0}},
		},
		Counts: map[string]int64{"due": 20000, "sent": 20000, "confirmed": 19990, "received": 19993, "acked": 19993, "bytes_sent": 2_000_000},
		Spans: map[string]result.Span{
			"sent": {Last: 19.999}, "confirmed": {First: 0.001, Last: 20}, "received": {First: 0.001, Last: 20},
		},
		Errors: []result.ErrorCount{{Op: "send", Kind: "timeout", Count: 10}},
		Trends: m.trends,
		Groups: []result.Group{{Members: 2, Trends: map[string]*hist.Histogram{}, Account: account.Account{
			Group: "workers", Lost: 2, Undelivered: 1, Ranges: []account.Range{{ID: 1 << 63, From: 7, To: 9}},
			Tally: account.Tally{Expected: 19990, Received: 19987, Missing: 3, Settled: 19987, Duplicated: 4, Redelivered: 2, Reordered: 1},
		}}},
		History: m.history, OverTime: m.overTime,
	}
	slow := 1990.0
	r := &result.Result{
		Version: result.Version, Name: "stalled", Run: 7, Instance: 9, Seconds: 20, CPU: 0.21,
		Test: result.Test{Script: "orders.js", Scenarios: []result.Scenario{
			{Name: "consume", Executor: "constant-vus", Exec: "consume", VUs: 2, MaxVUs: 2, Options: map[string]any{"duration": "22s"}},
			{
				Name: "produce", Executor: "open-arrival-rate", Exec: "produce", VUs: 50, MaxVUs: 200,
				Options: map[string]any{"rate": 1000.0, "timeUnit": "1s", "arrivals": "poisson", "seed": 7.0, "duration": "20s", "startTime": "1s"},
			},
		}},
		Thresholds: []result.Threshold{
			{Metric: "broker_lost", Source: "count==0", Decision: result.Decision{Judged: true}},
			{Metric: "broker_e2e_latency", Source: "p(99)<5000", Decision: result.Decision{Held: true, Judged: true, Value: &slow}},
			{Metric: "broker_e2e_latency{consumer_group:audit}", Source: "p(99)<50", Decision: result.Decision{Why: "nothing was measured"}},
		},
		Checks:      []result.Check{{Name: "answers::the answer is right", Passes: 19_000, Fails: 7}},
		Marks:       []result.Annotation{{At: 8, What: "pause"}, {At: 10, What: "go on </script>"}},
		Started:     started,
		Environment: map[string]string{"k6": "v2.2.0", "cpu": "a <b>processor</b>"},
		Topics:      []result.Topic{t, unread()},
		Recording:   m.recorded,
	}
	verdict.Judge(r, verdict.Circumstances{CPU: r.CPU, Dropped: 3})
	value := 2.0
	verdict.AddThreshold(r, result.Threshold{Metric: "broker_lost", Source: "count==0", Decision: result.Decision{Judged: true, Value: &value}})
	return r
}

// crowded is a run of more topics than a page shows at once.
func crowded() *result.Result {
	r := stalled()
	for i := range 4 {
		t := r.Topics[0]
		t.Topic = fmt.Sprintf("orders-%d", i)
		r.Topics = append(r.Topics, t)
	}
	r.Name = "crowded"
	verdict.Judge(r, verdict.Circumstances{})
	return r
}

// unread is a topic of a closed loop that nobody read, with the same name for its files but for the case.
func unread() result.Topic {
	t := result.Topic{
		Broker: "nats://127.0.0.1:4222", Driver: "nats", Topic: "Orders__/script_", Confirm: "unconfirmed", Proofs: []result.Proof{{Confirm: "unconfirmed"}},
		Options: result.Uses{}, Errors: []result.ErrorCount{}, Groups: []result.Group{}, History: []result.Point{},
		OverTime: map[string][]result.Summary{}, Counts: map[string]int64{"sent": 30}, Trends: map[string]*hist.Histogram{"publish_latency": {}},
	}
	t.Trends["publish_latency"].RecordN(1500, 30)
	r := result.Result{Topics: []result.Topic{t}}
	verdict.Describe(&r)
	return r.Topics[0]
}

// sameResult tells whether two results say the same, histograms included.
func sameResult(t *testing.T, a, b *result.Result) bool {
	t.Helper()
	return string(encode(t, a)) == string(encode(t, b))
}
