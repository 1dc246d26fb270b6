package capacity

import (
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
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
	r.Describe()
	r.Judge(result.Circumstances{Dropped: r.Dropped, Unserved: r.Unserved})
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
		{"missed", taking(15*time.Millisecond, 0), Missed, "publish_latency p99 is 15.0ms"},
		{"met, late", taking(9*time.Millisecond, 5*time.Millisecond), Met, ""},
		{"missed, perhaps late", taking(15*time.Millisecond, 7*time.Millisecond), Generator, "is lateness of the load generator"},
		{"missed for sure", taking(90*time.Millisecond, 30*time.Millisecond), Missed, "publish_latency p99 is 90.0ms"},
		{"arrivals that never ran", taking(time.Millisecond, 0, func(r *result.Result) { r.Unserved = 3 }), Generator, "3 arrivals were due but never got an iteration"},
		{"a busy generator", taking(90*time.Millisecond, 0, func(r *result.Result) { r.Topics[0].History[5].Busiest = 0.95 }), Generator, "95 % of its CPUs"},
		{"failed sends", taking(time.Millisecond, 0, func(r *result.Result) {
			r.Topics[0].AddErrors(result.ErrorCount{Op: "send", Kind: "timeout", Count: 2000})
		}), Missed, "are not in it"},
		{"a few failed sends", taking(time.Millisecond, 0, func(r *result.Result) {
			r.Topics[0].AddErrors(result.ErrorCount{Op: "send", Kind: "timeout", Count: 2})
		}), Met, ""},
		{"growing", taking(time.Millisecond, 0, func(r *result.Result) {
			for i := range r.Topics[0].OverTime["publish_latency"] {
				r.Topics[0].OverTime["publish_latency"][i].P50 += int64(i) * int64(100*time.Microsecond)
			}
		}), Unsteady, "p50 of publish latency grew"},
		{"a step in a probe of 15 s", taking(time.Millisecond, 0, func(r *result.Result) {
			t := &r.Topics[0]
			t.History, t.OverTime["publish_latency"] = t.History[:15], t.OverTime["publish_latency"][:15]
			for i := range t.OverTime["publish_latency"] {
				s := &t.OverTime["publish_latency"][i]
				s.P50, s.P99 = int64(time.Millisecond)*(3+int64(i%3)/2), int64(time.Millisecond)*(9+int64(i*7%5))
				if i > 7 {
					s.P50, s.P99 = s.P50+int64(300*time.Millisecond), s.P99+int64(300*time.Millisecond)
				}
			}
		}), Unsteady, "p50 of publish latency grew"},
		{"a script that keeps its VUs busy", taking(900*time.Millisecond, 0, sinceSent(300*time.Microsecond, 1)), Generator, "they waited for VUs, which the script kept busy"},
		{"a system that keeps the VUs busy", taking(900*time.Millisecond, 0, sinceSent(9*time.Millisecond, 1)), Missed, "publish_latency p99 is 900ms"},
		{"a slow system", taking(900*time.Millisecond, 0, sinceSent(800*time.Millisecond, 5000)), Missed, "publish_latency p99 is 900ms"},
		{"shrinking", taking(time.Millisecond, 0, func(r *result.Result) {
			for i := range r.Topics[0].OverTime["publish_latency"] {
				r.Topics[0].OverTime["publish_latency"][i].P50 -= int64(i) * int64(20*time.Microsecond)
			}
		}), Met, ""},
		{"too few", taking(time.Millisecond, 0, func(r *result.Result) {
			h := &hist.Histogram{}
			h.RecordN(5, 500)
			r.Topics[0].Trends["publish_latency"] = h
		}), Unjudged, "500 samples do not support p99"},
	} {
		answer, why, err := Judge(c.of, objectives(t, "publish_latency p99 < 10ms"))
		if err != nil || answer != c.answer || !strings.Contains(why, c.why) || c.why == "" && why != "" {
			t.Errorf("%s: %v %q %v", c.name, answer, why, err)
		}
	}
	closed := taking(time.Millisecond, 0, func(r *result.Result) { r.Topics[0].OpenLoop, r.Topics[0].ClosedLoop = false, true })
	if _, _, err := Judge(closed, objectives(t, "publish_latency p99 < 10ms")); err == nil || !strings.Contains(err.Error(), "closed loop") {
		t.Error(err)
	}
	if _, _, err := Judge(taking(time.Millisecond, 0, func(r *result.Result) { r.Topics = nil }), nil); err == nil {
		t.Error("a run in which nothing was sent passes")
	}
}

// sinceSent is how long a message took from when it was sent, of a test with so many VUs.
func sinceSent(took time.Duration, vus uint64) func(*result.Result) {
	return func(r *result.Result) {
		h := &hist.Histogram{}
		h.RecordN(int64(took), 20_000)
		r.Topics[0].Trends["publish_time"], r.Topics[0].Trends["schedule_lag"] = h, r.Topics[0].Trends["publish_latency"]
		r.Test.Scenarios = []result.Scenario{{Executor: "open-arrival-rate", VUs: vus, MaxVUs: vus}, {Executor: "consumers", VUs: 100, MaxVUs: 100}}
	}
}

// What is lost of messages that the generator sent in bunches says nothing of the system, as far as there are as many of these.
func TestWhatIsLostOfBunches(t *testing.T) {
	losing := func(lost uint64, late int64, by time.Duration) *result.Result {
		return taking(time.Millisecond, 0, func(r *result.Result) {
			lag := &hist.Histogram{}
			lag.RecordN(int64(100*time.Microsecond), uint64(20_000-late))
			lag.RecordN(int64(by), uint64(late))
			topic := &r.Topics[0]
			topic.Trends["generator_lag"] = lag
			topic.Counts["received"] = 20_000 - int64(lost)
			topic.Groups = []result.Group{{Account: account.Account{Tally: account.Tally{Expected: 20_000}, Lost: lost}}}
		})
	}
	for _, c := range []struct {
		of     *result.Result
		answer Answer
		why    string
	}{
		{losing(272, 400, 100*time.Millisecond), Generator, "lost is 272, but the load generator sent 400 messages so late"},
		{losing(272, 100, 100*time.Millisecond), Missed, "lost is 272"},
		{losing(272, 400, 5*time.Millisecond), Missed, "lost is 272"},
		{losing(0, 400, 100*time.Millisecond), Met, ""},
	} {
		if answer, why, err := Judge(c.of, objectives(t, "lost == 0")); err != nil || answer != c.answer || !strings.HasPrefix(why, c.why) {
			t.Errorf("%v %q %v, want %v %q", answer, why, err, c.answer, c.why)
		}
	}
}

func TestImpossibleObjectives(t *testing.T) {
	for _, text := range []string{"e2e_latency p99 < 0s", "lost < 0", "lost == 3", "e2e_latency p99 > 1ms", "confirmed rate > 5", "sent < 5", "e2e_latency p99 == 1ms", "lost != 0"} {
		if err := CheckObjectives(objectives(t, text)); err == nil {
			t.Errorf("%s passes", text)
		}
	}
	for _, texts := range [][]string{nil, {"lost == 0", "lost == 0"}} {
		if err := CheckObjectives(objectives(t, texts...)); err == nil {
			t.Errorf("%q pass", texts)
		}
	}
	if err := CheckObjectives(objectives(t, "lost == 0", "e2e_latency p99.9 <= 1s", "errors < 3")); err != nil {
		t.Error(err)
	}
}
