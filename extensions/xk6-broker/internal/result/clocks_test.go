package result

import (
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason/reasontest"
)

// crossed is a result of a process that got messages from another one: a thousand that took from one time to ten times that.
func crossed(from time.Duration) *Result {
	h := &hist.Histogram{}
	for i := range 1000 {
		h.Record(int64(from) + int64(from)*9*int64(i)/1000)
	}
	sent := int64(1000)
	return &Result{Topics: []Topic{{
		Topic: "orders", OpenLoop: true, Shared: true,
		Counts: map[string]int64{metric.Sent.String(): sent, metric.Confirmed.String(): sent, metric.Received.String(): sent, metric.Sibling.String(): 500},
		Trends: map[string]*hist.Histogram{metric.E2ELatency.String(): h, metric.PublishLatency.String(): h},
	}}}
}

func (r *Result) meets(c Clock) {
	r.Meet(1, "one", []Peer{{Process: 2, Instance: 2, Name: "two", Clock: &c}}, "")
	r.Judge(Circumstances{})
}

func clockOf(offset, bound time.Duration) Clock {
	return Clock{Offset: int64(offset), Bound: int64(bound), Least: int64(offset - bound), Most: int64(offset + bound)}
}

// A percentile of what was measured by two clocks is believed where these are less than a tenth of it apart. That is no fault of the run, unless they are
// apart for certain, and nothing can be believed for it.
func TestLatenciesByTwoClocks(t *testing.T) {
	for name, c := range map[string]struct {
		clock    Clock
		believed int    // of p50, p90, p95 and p99: 55, 91, 95.5 and 99 ms
		clocks   string // of the reason
		note     string
	}{
		"one clock":     {clockOf(0, 200*time.Nanosecond), 4, "", ""},
		"close":         {clockOf(time.Millisecond, 3*time.Millisecond), 4, "", ""},
		"less close":    {clockOf(0, 7*time.Millisecond), 3, "", "apart=0.007 quantiles=p50"},
		"nothing known": {clockOf(0, 50*time.Millisecond), 0, "", "quantiles=p50,_p90,_p95,_p99"},
		"ahead": {
			clockOf(time.Second, 300*time.Microsecond), 0,
			"the clock of process 2 (two) is 1s ± 300µs ahead of that of process 1 (one)", "",
		},
		"behind": {
			clockOf(-time.Second, 300*time.Microsecond), 0,
			"the clock of process 1 (one) is 1s ± 300µs ahead of that of process 2 (two)", "",
		},
		"a little ahead": {clockOf(6*time.Millisecond, time.Millisecond), 3, "", "quantiles=p50"},
	} {
		r := crossed(10 * time.Millisecond)
		r.meets(c.clock)
		n, published := 0, 0
		for _, p := range r.Topics[0].Percentiles[metric.E2ELatency.String()] {
			if p.Believed && p.Q <= 0.99 {
				n++
			}
		}
		for _, p := range r.Topics[0].Percentiles[metric.PublishLatency.String()] {
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
	r.Topics[0].Counts[metric.Negative.String()] = 7
	r.meets(clockOf(time.Second, time.Millisecond))
	if !reasontest.Has(r.Verdict.Invalid(), "clocks why=negative count=7 clocks=the_clock_of_process_2_(two)_is_1s_±_1ms_ahead_of_that_of_process_1_(one)") {
		t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
	}
}

// A threshold is decided where clocks make no difference to it.
func TestThresholdsByTwoClocks(t *testing.T) {
	for source, judged := range map[string]bool{"p(50)<100": true, "p(50)<60": false, "p(50)<40": true, "p(50)>50": false, "max<200": true, "min>4": false, "min>2": true} {
		r := crossed(10 * time.Millisecond)
		r.meets(clockOf(0, 7*time.Millisecond))
		c, err := ParseCondition(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, trend := range []metric.Trend{metric.E2ELatency, metric.PublishLatency} {
			want := judged || trend == metric.PublishLatency
			d := r.Latency(c, trend.String(), []Portion{{Topic: "orders", Histogram: r.Topics[0].Trends[trend.String()]}})
			if d.Judged != want {
				t.Errorf("%s of %v: %+v", source, trend, d)
			}
		}
	}
}

// Who did not come, came twice or could not be talked with is told.
func TestWhoWasNotMet(t *testing.T) {
	r := crossed(time.Millisecond)
	r.Meet(1, "one", []Peer{{Process: 2, Lacked: "never came within 1m0s"}, {Process: 3, Instance: 5, Twin: 6, Name: "three"}}, "")
	r.Judge(Circumstances{})
	for _, want := range []string{
		"process-missing why=late name=process_2 detail=never_came_within_1m0s", "processes-differ why=twice detail=process_3 names=instances_5_and_6",
	} {
		if !reasontest.Has(r.Verdict.Invalid(), want) || r.Verdict.Account || r.Verdict.Latencies {
			t.Errorf("no %q in %q", want, reasontest.Codes(r.Verdict.Reasons))
		}
	}
	r = crossed(time.Millisecond)
	r.Meet(1, "one", nil, "an embedded broker is in one process alone")
	r.Judge(Circumstances{})
	if !r.Verdict.Valid || !reasontest.Has(r.Verdict.Notes(), "processes-differ why=apart detail=an_embedded_broker_is_in_one_process_alone") {
		t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
	}
}

// The whole has of each two processes what both know of their clocks, and of each topic the two furthest apart that had to do with one another there.
func TestClocksOfTheWhole(t *testing.T) {
	part := func(instance uint32, name string, peers ...Peer) Part {
		return Part{Result: &Result{Name: name, Instance: instance, Peers: peers}, Ledger: &account.Ledger{Instance: instance}}
	}
	of := func(instance uint32, c Clock) Peer { return Peer{Instance: instance, Clock: &c} }
	parts := []Part{
		part(1, "one", of(2, clockOf(10, 5)), of(3, clockOf(time.Second, 5))),
		part(2, "two", of(1, clockOf(-12, 4))),
		part(3, "three"),
	}
	received := func(from uint32) account.GroupLedger {
		g := account.GroupLedger{}
		g.Sources = []account.SourceSnapshot{{ID: uint64(from) << 32, Received: some(9)}}
		return g
	}
	parts[0].Ledger.Topics = []account.TopicLedger{{Topic: "orders", Groups: []account.GroupLedger{received(2), received(1)}}}
	parts[1].Ledger.Topics = []account.TopicLedger{{Topic: "orders", Groups: []account.GroupLedger{received(1)}}, {Topic: "other", Groups: []account.GroupLedger{received(3)}}}
	m := &merger{parts: parts, result: &Result{Topics: []Topic{{Topic: "orders"}, {Topic: "other"}}}}
	m.apart()
	if len(m.result.Clocks) != 2 {
		t.Fatalf("%+v", m.result.Clocks)
	}
	c := m.result.Clocks[0]
	if c.Of != "process 2 (two)" || c.Than != "process 1 (one)" || c.Offset != 12 || c.Bound != 4 || c.Least != 8 || c.Most != 15 {
		t.Errorf("%+v", c)
	}
	if a := m.result.Topics[0].Apart; a == nil || a.Most != 15 {
		t.Errorf("%+v", a)
	}
	if a := m.result.Topics[1].Apart; a != nil || !m.uncompared { // of two and three nothing is known
		t.Errorf("%+v, %v", a, m.uncompared)
	}
}

// some returns a set of n numbers.
func some(n int) account.Set {
	t := account.NewTopic()
	p := t.Producer(1)
	p.ExpectN(p.NextN(n), n)
	return t.Snapshot().Producers[0].Expected
}

// Processes that met ran at one time, whatever their clocks say.
func TestClocksThatAreAnHourApart(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	one := Part{Result: &Result{Name: "one", Instance: 1, Started: began, Seconds: 20}, Ledger: &account.Ledger{Instance: 1}}
	two := Part{Result: &Result{Name: "two", Instance: 2, Started: began.Add(time.Hour), Seconds: 20}, Ledger: &account.Ledger{Instance: 2}}
	ahead := clockOf(time.Hour, 200*time.Microsecond)
	one.Result.Peers = []Peer{{Process: 2, Instance: 2, Clock: &ahead}}
	const want = "one and two ran at one time, and not by their clocks: the clock of two is 1h0m0s ± 200µs ahead of that of one; set the machines' clocks"
	if _, err := Merge([]Part{one, two}, Siblings{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	one.Result.Peers = nil
	if _, err := Merge([]Part{one, two}, Siblings{}); err == nil || !strings.Contains(err.Error(), "are not of one time") {
		t.Error(err)
	}
}
