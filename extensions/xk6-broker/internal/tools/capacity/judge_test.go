package capacity

import (
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

func objectives(t *testing.T, texts ...string) (all []measure.Objective) {
	t.Helper()
	for _, text := range texts {
		o, err := measure.ParseObjective(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// taking is the result of a run of 20 s whose publish latency is that, every second; the generator was late by so much.
func taking(latency, late time.Duration, change ...func(*result.Result)) *result.Result {
	h, lag := &hist.Histogram{}, &hist.Histogram{}
	h.RecordN(int64(latency), 20_000)
	lag.RecordN(int64(late), 20_000)
	topic := result.Topic{
		Topic: "orders", OpenLoop: true, Counts: map[string]int64{"due": 20_000, "sent": 20_000, "confirmed": 20_000}, Errors: []result.ErrorCount{},
		Trends: map[string]*hist.Histogram{"publish_latency": h, "generator_lag": lag}, OverTime: map[string][]result.Summary{},
	}
	for s := range 20 {
		at := float64(s + 1)
		topic.History = append(topic.History, result.Point{At: at, Seconds: 1, Counts: map[string]int64{"due": 1000, "confirmed": 1000}})
		topic.OverTime["publish_latency"] = append(topic.OverTime["publish_latency"], result.Summary{At: at, Seconds: 1, Count: 1000, P50: int64(latency), P99: int64(latency)})
	}
	r := &result.Result{Version: result.Version, Seconds: 20, Topics: []result.Topic{topic}}
	for _, f := range change {
		f(r)
	}
	verdict.Describe(r)
	verdict.Judge(r, verdict.Circumstances{Dropped: r.Dropped, Unserved: r.Unserved})
	return r
}

func TestWhatAProbeSays(t *testing.T) {
	for _, c := range []struct {
		name   string
		of     *result.Result
		answer Answer
		why    string
	}{
		{"met", taking(5*time.Millisecond, 0), Met, ""},
		{"missed", taking(15*time.Millisecond, 0), Missed, "publish_latency p99 is 15"},
		{"met, late", taking(9*time.Millisecond, 5*time.Millisecond), Met, ""},
		{"missed, perhaps late", taking(15*time.Millisecond, 7*time.Millisecond), Generator, "is delay of the load generator"},
		{"missed, by whose fault is not known", taking(90*time.Millisecond, 30*time.Millisecond), Generator, "publish_latency p99 is 90"},
		{"arrivals that never ran", taking(time.Millisecond, 0, func(r *result.Result) { r.Unserved = 3 }), Generator, "3 arrivals were due but never got an iteration"},
		{"a busy generator", taking(90*time.Millisecond, 0, func(r *result.Result) { r.Topics[0].History[5].Busiest = 0.95 }), Generator, "95 % of its CPUs"},
		{"failed sends", taking(time.Millisecond, 0, func(r *result.Result) {
			r.Topics[0].Errors = []result.ErrorCount{{Op: "send", Kind: "timeout", Count: 2000}}
		}), Missed, "are missing"},
		{"a few failed sends", taking(time.Millisecond, 0, func(r *result.Result) {
			r.Topics[0].Errors = []result.ErrorCount{{Op: "send", Kind: "timeout", Count: 2}}
		}), Met, ""},
		{"growing", taking(time.Millisecond, 0, func(r *result.Result) {
			for i := range r.Topics[0].OverTime["publish_latency"] {
				r.Topics[0].OverTime["publish_latency"][i].P50 += int64(i) * int64(100*time.Microsecond)
			}
		}), Missed, "p50 of publish latency grew"},
		{"shrinking", taking(time.Millisecond, 0, func(r *result.Result) {
			for i := range r.Topics[0].OverTime["publish_latency"] {
				r.Topics[0].OverTime["publish_latency"][i].P50 -= int64(i) * int64(20*time.Microsecond)
			}
		}), Met, ""},
	} {
		answer, why, err := Judge(c.of, objectives(t, "publish_latency p99 < 10ms"))
		if err != nil || answer != c.answer || !strings.Contains(why, c.why) || c.why == "" && why != "" {
			t.Errorf("%s: %v %q %v", c.name, answer, why, err)
		}
	}
	few := taking(time.Millisecond, 0, func(r *result.Result) {
		h := &hist.Histogram{}
		h.RecordN(5, 500)
		r.Topics[0].Trends["publish_latency"] = h
	})
	if _, _, err := Judge(few, objectives(t, "publish_latency p99 < 10ms")); err == nil || !strings.Contains(err.Error(), "500 samples do not support p99") {
		t.Error(err)
	}
	closed := taking(time.Millisecond, 0, func(r *result.Result) { r.Topics[0].OpenLoop, r.Topics[0].ClosedLoop = false, true })
	if _, _, err := Judge(closed, objectives(t, "publish_latency p99 < 10ms")); err == nil || !strings.Contains(err.Error(), "closed loop") {
		t.Error(err)
	}
	if _, _, err := Judge(taking(time.Millisecond, 0, func(r *result.Result) { r.Topics = nil }), nil); err == nil {
		t.Error("a run in which nothing was sent passes")
	}
}
