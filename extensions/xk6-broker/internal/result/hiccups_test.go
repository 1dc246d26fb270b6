package result

import (
	"fmt"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
)

// stood is what a witness sees in 20 s of a process that stands still so often for 90 ms.
func stood(times int) *hist.Histogram {
	h := &hist.Histogram{}
	for range times {
		for late := range 90 {
			h.Record(int64(late+1) * int64(time.Millisecond))
		}
	}
	h.RecordN(20_000, uint64(20_000-90*times)) //gosec:disable G115 -- a count
	return h
}

// threeProcesses are one that sends, one that consumes and stands still for 18 % of the time, and two that consume and do not. All have a measured window,
// in which the second one stands still as often.
func threeProcesses() []Part {
	ms := int64(time.Millisecond)
	part := func(instance uint32, group string, hiccups *hist.Histogram, n uint64, latencies ...string) Part {
		trends, of := map[string]*hist.Histogram{}, map[string]*hist.Histogram{}
		for _, name := range latencies {
			h := &hist.Histogram{}
			h.RecordN(90*ms, n-n/5)
			h.RecordN(135*ms, n/5)
			trends[name] = h
			if group != "" {
				of[name] = h
			}
		}
		t := Topic{
			Driver: "memory", Topic: "orders", OpenLoop: true, Counts: counted(map[metric.Counter]int64{metric.Received: int64(n)}), //gosec:disable G115 -- a count
			Trends: trends, Phases: map[string]Window{Measure: {Counts: map[string]int64{}, Trends: trends}},
		}
		if group != "" {
			t.Groups = []Group{{Account: account.Account{Group: group}, Trends: of}}
			w := t.Phases[Measure]
			w.Groups = []WindowGroup{{Group: group, Trends: of}}
			t.Phases[Measure] = w
		}
		r := &Result{
			Name: fmt.Sprint(instance), Run: 1, Instance: instance, Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Seconds: 20, Topics: []Topic{t},
			Platform: &Platform{Hiccups: hiccups}, Phases: []Phase{{Name: Measure, Stretches: []Stretch{{0, 20}}, Seconds: 20, Hiccups: hiccups}},
		}
		return Part{Result: r, Ledger: &account.Ledger{Run: 1, Instance: instance}}
	}
	e2e := metric.E2ELatency.String()
	return []Part{
		part(1, "", stood(0), 2000, metric.PublishLatency.String()), part(2, "b", stood(40), 2000, e2e),
		part(3, "c", stood(0), 2000, e2e), part(4, "d", stood(0), 20_000, e2e),
	}
}

func believed(of []Percentile, q float64) bool {
	for _, p := range of {
		if p.Q == q {
			return p.Believed
		}
	}
	return false
}

// What a process measured is held against the hiccups of that process, whoever else's there are, and what several did against those of each by its share.
func TestALatencyIsHeldAgainstTheHiccupsOfThoseWhoMeasuredIt(t *testing.T) {
	merged, err := Merge(threeProcesses(), Siblings{})
	if err != nil {
		t.Fatal(err)
	}
	e2e, publish := metric.E2ELatency.String(), metric.PublishLatency.String()
	for name, r := range map[string]*Result{"whole": merged, "measured": merged.Led()} {
		topic := r.Topics[0]
		for i, want := range []bool{false, true, true} {
			g := topic.Groups[i]
			if got := believed(g.Percentiles[e2e], 0.9); got != want || !believed(g.Percentiles[e2e], 0.5) {
				t.Errorf("%s: p90 of the group %s believed: %v", name, g.Group, got)
			}
			if h := g.Hiccups[e2e]; h == nil || h.Count() != g.Trends[e2e].Count() {
				t.Errorf("%s: the group %s has hiccups %v", name, g.Group, h)
			}
		}
		if !believed(topic.Percentiles[publish], 0.99) {
			t.Errorf("%s: of the process that sent, which did not stand still: %+v", name, topic.Percentiles[publish])
		}
		// 2000 of all 24,000 values are of the process that stood still for 18 % of the time: 1.5 %.
		if !believed(topic.Percentiles[e2e], 0.95) || believed(topic.Percentiles[e2e], 0.99) {
			t.Errorf("%s: of all groups: %+v", name, topic.Percentiles[e2e])
		}
		if total := r.Total(); !believed(total.Percentiles[e2e], 0.95) || believed(total.Percentiles[e2e], 0.99) || !believed(total.Percentiles[publish], 0.99) {
			t.Errorf("%s: of all topics: %+v", name, total.Percentiles)
		}
	}
	portion := Portion{Histogram: merged.Topics[0].Groups[0].Trends[e2e], Topic: "orders", Group: "b"}
	condition, err := ParseCondition("p(90)<130")
	if err != nil {
		t.Fatal(err)
	}
	merged.Verdict.Latencies = true
	if d := merged.Latency(condition, e2e, []Portion{portion}); d.Judged {
		t.Errorf("a threshold on the group whose process stood still is decided: %+v", d)
	}
}

// What befell the messages of one process counts by these in a merge too, where its platform was seldom late over time.
func TestHiccupsByMessageAreMerged(t *testing.T) {
	parts := threeProcesses()
	of, e2e := parts[1].Result, metric.E2ELatency.String()
	over := stood(1)
	of.Platform.Hiccups, of.Phases[0].Hiccups = over, over
	for _, known := range []bool{false, true} {
		if known {
			ended := func(metric.Trend, string) *hist.Histogram { return stood(40) }
			of.Topics[0].Befall(over, ended)
			w := of.Topics[0].Phases[Measure]
			w.Befall(over, ended)
			of.Topics[0].Phases[Measure] = w
		}
		merged, err := Merge(parts, Siblings{})
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]*Result{"whole": merged, "measured": merged.Led()} {
			for i, want := range []bool{!known, true, true} {
				g := r.Topics[0].Groups[i]
				if got := believed(g.Percentiles[e2e], 0.9); got != want {
					t.Errorf("%s, by message: %v: p90 of the group %s believed: %v", name, known, g.Group, got)
				}
			}
		}
	}
}

// A request has one end where it is received and one where its reply is, each as late as that process.
func TestARequestIsHeldAgainstTheHiccupsOfThoseWhoAnswerIt(t *testing.T) {
	parts := threeProcesses()[:2]
	topic := &parts[0].Result.Topics[0]
	request := metric.RequestLatency.String()
	topic.Trends = map[string]*hist.Histogram{request: topic.Trends[metric.PublishLatency.String()]}
	merged, err := Merge(parts, Siblings{})
	if err != nil {
		t.Fatal(err)
	}
	if of := merged.Topics[0].Percentiles[request]; believed(of, 0.9) || !believed(of, 0.5) {
		t.Errorf("%+v", of)
	}
}

func TestScaledHistogramsKeepTheirShape(t *testing.T) {
	h := stood(40)
	for _, n := range []uint64{1, 7, 100, 20_000, 5_000_000} {
		s := scaled(h, n)
		if s.Count() != n {
			t.Errorf("%d values of %d", s.Count(), n)
		}
		for _, q := range []float64{0.5, 0.9, 0.99} {
			if float64(n)*(1-q) < 10 {
				continue
			}
			if got, want := s.Quantile(q), h.Quantile(q); got-want > int64(2*time.Millisecond) || want-got > int64(2*time.Millisecond) {
				t.Errorf("of %d values the quantile %v is %v, want %v", n, q, time.Duration(got), time.Duration(want))
			}
		}
	}
}

// A percentile is held against what is worse: the hiccups over time, or those that befell the ends of messages.
func TestTheWorseOfTwoIsWhatCounts(t *testing.T) {
	ms := int64(time.Millisecond)
	latency := spread(1000, 100*ms)
	of := func(values ...int64) *hist.Histogram {
		h := &hist.Histogram{}
		for _, v := range values {
			h.RecordN(v*ms, 100)
		}
		return h
	}
	publish, failed := metric.PublishLatency.String(), metric.FailedLatency.String()
	for name, c := range map[string]struct {
		platform, ends    *hist.Histogram
		median, ninetieth int64 // ms
	}{
		"over time":       {of(0, 0, 0, 0, 0, 0, 0, 0, 50, 60), of(0, 0), 0, 50},
		"of the messages": {of(0, 0, 0, 0, 0, 0, 0, 0, 0, 1), of(0, 30, 40), 30, 40},
		"either":          {of(0, 0, 0, 0, 0, 0, 0, 0, 50, 60), of(0, 30, 40, 40), 30, 50},
		"nobody watched":  {nil, of(0, 30, 40), 30, 40},
		"nobody counted":  {of(0, 0, 0, 0, 0, 0, 0, 0, 50, 60), nil, 0, 50},
	} {
		topic := Topic{Topic: "orders", Trends: map[string]*hist.Histogram{publish: latency, failed: latency}}
		topic.Befall(c.platform, func(t metric.Trend, _ string) *hist.Histogram {
			if t == metric.FailedLatency {
				return nil
			}
			return c.ends
		})
		h := topic.Hiccups[publish]
		if h.Count() != latency.Count() || !near(h.Quantile(0.5), c.median*ms) || !near(h.Quantile(0.9), c.ninetieth*ms) {
			t.Errorf("%s: %d values, half of them to %v and 90 %% to %v", name, h.Count(), time.Duration(h.Quantile(0.5)), time.Duration(h.Quantile(0.9)))
		}
		if of := topic.Hiccups[failed]; of != nil && of.Quantile(0.5) != 0 {
			t.Errorf("%s: what failed was not counted, and its median is late by %v", name, time.Duration(of.Quantile(0.5)))
		}
	}
}

func near(a, b int64) bool { return a-b <= b/500 && b-a <= b/500 }
