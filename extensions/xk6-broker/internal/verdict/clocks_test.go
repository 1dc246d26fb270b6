package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

// crossed is a result of a process that got messages from another one: a thousand that took from one time to ten times that.
func crossed(from time.Duration) *result.Result {
	h := &hist.Histogram{}
	for i := range 1000 {
		h.Record(int64(from) + int64(from)*9*int64(i)/1000)
	}
	sent := int64(1000)
	return &result.Result{Topics: []result.Topic{{
		Topic: "orders", OpenLoop: true, Shared: true,
		Counts: map[string]int64{recording.Sent.String(): sent, recording.Confirmed.String(): sent, recording.Received.String(): sent, recording.Sibling.String(): 500},
		Trends: map[string]*hist.Histogram{recording.E2ELatency.String(): h, recording.PublishLatency.String(): h},
	}}}
}

// meets has the topics be measured by two clocks.
func meets(r *result.Result, c result.Clocks) {
	for i := range r.Topics {
		r.Topics[i].Apart = &c
	}
	Judge(r, Circumstances{})
}

func clocksOf(offset, bound time.Duration) result.Clocks {
	return result.Clocks{Of: "process 2 (two)", Than: "process 1 (one)", Offset: int64(offset), Bound: int64(bound)}
}

// A percentile of what was measured by two clocks is believed where these are less than a tenth of it apart. That is no fault of the run, unless they are
// apart for certain, and nothing can be believed for it.
func TestLatenciesByTwoClocks(t *testing.T) {
	for name, c := range map[string]struct {
		clock    result.Clocks
		believed int    // of p50, p90, p95 and p99: 55, 91, 95.5 and 99 ms
		clocks   string // of the reason
		note     string
	}{
		"one clock":     {clocksOf(0, 200*time.Nanosecond), 4, "", "apart=2e-07"},
		"close":         {clocksOf(time.Millisecond, 3*time.Millisecond), 4, "", "apart=0.004"},
		"less close":    {clocksOf(0, 7*time.Millisecond), 3, "", "apart=0.007"},
		"nothing known": {clocksOf(0, 50*time.Millisecond), 0, "", "apart=0.05"},
		"ahead": {
			clocksOf(time.Second, 300*time.Microsecond), 0,
			"the clock of process 2 (two) is 1s ± 300µs ahead of that of process 1 (one)", "",
		},
		"behind": {
			clocksOf(-time.Second, 300*time.Microsecond), 0,
			"the clock of process 1 (one) is 1s ± 300µs ahead of that of process 2 (two)", "",
		},
		"a little ahead": {clocksOf(6*time.Millisecond, time.Millisecond), 3, "", "apart=0.007"},
	} {
		r := crossed(10 * time.Millisecond)
		meets(r, c.clock)
		n, published := 0, 0
		for _, p := range r.Topics[0].Percentiles[recording.E2ELatency.String()] {
			if p.Believed && p.Q <= 0.99 {
				n++
			}
		}
		for _, p := range r.Topics[0].Percentiles[recording.PublishLatency.String()] {
			if p.Believed && p.Q <= 0.99 {
				published++
			}
		}
		if n != c.believed || published != 4 {
			t.Errorf("%s: %d of 4 are believed, want %d; and of another latency %d", name, n, c.believed, published)
		}
		if except := r.Verdict.Except; (except == "end-to-end latency") != (name == "nothing known") {
			t.Errorf("%s: valid but for %q", name, except)
		}
		v := r.Verdict
		wrong := reasontest.Has(v.Invalid(), "clocks why=wrong clocks="+strings.ReplaceAll(c.clocks, " ", "_"))
		if wrong != (c.clocks != "") || v.Valid == wrong || reasontest.Has(v.Notes(), "clocks why=apart "+c.note) != (c.note != "") {
			t.Errorf("%s: valid %v, %q", name, v.Valid, reasontest.Codes(v.Reasons))
		}
	}
}

// What arrived before it was sent is explained by how the clocks differ.
func TestClocksExplainWhatCameBeforeItWasSent(t *testing.T) {
	r := crossed(10 * time.Millisecond)
	r.Topics[0].Counts[recording.Negative.String()] = 7
	meets(r, clocksOf(time.Second, time.Millisecond))
	if !reasontest.Has(r.Verdict.Invalid(), "clocks why=negative count=7 clocks=the_clock_of_process_2_(two)_is_1s_±_1ms_ahead_of_that_of_process_1_(one)") {
		t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
	}
}

// A threshold is decided where clocks make no difference to it.
func TestThresholdsByTwoClocks(t *testing.T) {
	for source, judged := range map[string]bool{"p(50)<100": true, "p(50)<60": false, "p(50)<40": true, "p(50)>50": false, "max<200": true, "min>4": false, "min>2": true} {
		r := crossed(10 * time.Millisecond)
		meets(r, clocksOf(0, 7*time.Millisecond))
		c, err := ParseCondition(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, trend := range []recording.Trend{recording.E2ELatency, recording.PublishLatency} {
			want := judged || trend == recording.PublishLatency
			d := Latency(r, c, trend.String(), []Portion{{Topic: "orders", Histogram: r.Topics[0].Trends[trend.String()]}})
			if d.Judged != want {
				t.Errorf("%s of %v: %+v", source, trend, d)
			}
		}
	}
}

// A process that was waited for in vain speaks against the result; clocks that were not compared are noted.
func TestProcessMissing_Invalid(t *testing.T) {
	r := crossed(time.Millisecond)
	r.Siblings, r.Missing = 1, []string{"process 2"}
	Judge(r, Circumstances{})
	if !reasontest.Has(r.Verdict.Invalid(), "process-missing why=late name=process_2") || r.Verdict.Account || r.Verdict.Latencies {
		t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
	}
	if !reasontest.Has(r.Verdict.Notes(), "clocks why=not-compared count=2") {
		t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
	}
}

// Two clocks differ by the difference of their offsets, give or take the sum of their bounds; those of one machine by its clock, unless that contradicts.
// A topic has the two furthest apart of those that had to do with one another there.
func TestClocksOfTheWhole(t *testing.T) {
	part := func(instance uint32, name string, c *result.Clock) Part {
		r := &result.Result{Name: name, Instance: instance, Clock: c, Topics: []result.Topic{{Topic: "orders"}}}
		return Part{Result: r, Ledger: &account.Ledger{Instance: instance}}
	}
	for name, c := range map[string]struct {
		one, two *result.Clock
		want     result.Clocks
	}{
		"two machines":         {&result.Clock{Offset: 5, Bound: 3}, &result.Clock{Offset: -7, Bound: 4}, result.Clocks{Offset: 12, Bound: 7}},
		"one machine":          {&result.Clock{Offset: 5, Bound: 9, Machine: "m", Anchor: 100, AnchorBound: 1}, &result.Clock{Offset: -7, Bound: 9, Machine: "m", Anchor: 110, AnchorBound: 1}, result.Clocks{Offset: 10, Bound: 2, Same: true}},
		"one machine, shifted": {&result.Clock{Offset: 5, Bound: 9, Machine: "m", Anchor: 100, AnchorBound: 1}, &result.Clock{Offset: -700, Bound: 9, Machine: "m", Anchor: 110, AnchorBound: 1}, result.Clocks{Offset: 705, Bound: 18}},
		"one was not compared": {&result.Clock{Offset: 5, Bound: 3}, nil, result.Clocks{}},
		"none was compared":    {nil, nil, result.Clocks{}},
	} {
		parts := []Part{part(1, "one", c.one), part(2, "two", c.two)}
		m := &merger{parts: parts, result: &result.Result{Topics: []result.Topic{{Topic: "orders"}, {Topic: "other"}}}}
		m.compareClocks()
		if c.want == (result.Clocks{}) {
			if len(m.result.Clocks) != 0 || m.result.Topics[0].Apart != nil || !m.uncompared() {
				t.Errorf("%s: %+v, %v", name, m.result.Clocks, m.uncompared())
			}
			continue
		}
		c.want.Of, c.want.Than = "process 2 (two)", "process 1 (one)"
		if len(m.result.Clocks) != 1 || m.result.Clocks[0] != c.want || m.result.Topics[0].Apart == nil || *m.result.Topics[0].Apart != c.want || m.result.Topics[1].Apart != nil || m.uncompared() {
			t.Errorf("%s: %+v, %v", name, m.result.Clocks, m.uncompared())
		}
	}
}
