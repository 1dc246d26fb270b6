package result

import (
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

func windowOf(given map[string]int64, errors ...ErrorCount) Window {
	return Window{Counts: given, Errors: errors, Trends: map[string]*hist.Histogram{}}
}

func counts(n int64) map[string]int64 {
	return map[string]int64{"due": n, "sent": n, "confirmed": n, "received": n}
}

// latencyOf is a distribution of n values of a millisecond.
func latencyOf(n int) *hist.Histogram {
	h := &hist.Histogram{}
	for range n {
		h.Record(1e6)
	}
	return h
}

func verdictOf(r *Result) Verdict {
	r.Lead()
	r.Describe()
	r.Judge(Circumstances{})
	return r.Verdict
}

// A window of failures only, as of a broker that froze before it, is not valid.
func TestAWindowOfFailures(t *testing.T) {
	v := verdictOf(&Result{
		Topics: []Topic{{
			Topic: "orders", OpenLoop: true, Counts: counts(1000), Errors: []ErrorCount{{"send", "timeout", 100}}, Trends: map[string]*hist.Histogram{},
			Phases: map[string]Window{WarmUp: windowOf(counts(1000)), Measure: windowOf(map[string]int64{}, ErrorCount{"send", "timeout", 100})},
		}},
		Phases: []Phase{{Name: WarmUp, Seconds: 30}, {Name: Measure, Seconds: 30}},
	})
	if v.Valid || v.Latencies {
		t.Errorf("%+v", v)
	}
}

// A generator that measured itself is seen in a window that no interval of the history is wholly in.
func TestAWindowWithinAnInterval(t *testing.T) {
	var history []Point
	for i := range 64 {
		history = append(history, Point{At: float64(i+1) * 16, Seconds: 16, Counts: counts(16), Busiest: map[bool]float64{true: 0.99, false: 0.1}[i == 6]})
	}
	for window, want := range map[Stretch]bool{{100, 111}: false, {120, 127}: true} {
		v := verdictOf(&Result{
			Seconds: 1024,
			Topics: []Topic{{
				Topic: "orders", OpenLoop: true, Counts: counts(1024), History: history, Trends: map[string]*hist.Histogram{},
				Phases: map[string]Window{Starting: windowOf(counts(500)), Measure: windowOf(counts(500)), "rest": windowOf(counts(24))},
			}},
			Phases: []Phase{
				{Name: Starting, Stretches: []Stretch{{0, window.From}}},
				{Name: Measure, Stretches: []Stretch{window}, Seconds: window.To - window.From},
				{Name: "rest", Stretches: []Stretch{{window.To, 1024}}},
			},
		})
		if v.Valid != want {
			t.Errorf("%v: %v, %q", window, v.Valid, v.Reasons)
		}
	}
}

// What was on its way when a window ended is not in its latencies, and counts as the slowest; at the end of the run there is nothing.
func TestWhatIsOnItsWayWhenAWindowEnds(t *testing.T) {
	for _, c := range []struct {
		last        bool
		outstanding uint64
		underway    Underway
		e2e, send   bool // is believed
	}{
		{false, 0, Underway{}, true, true},
		{false, 2000, Underway{}, false, true},
		{false, 0, Underway{Deliveries: 2000}, false, true}, // of another process
		{false, 0, Underway{Arrivals: 2000, Sends: 2000}, false, false},
		{false, 0, Underway{Requests: 2000}, true, true},
		{true, 2000, Underway{}, true, true},
	} {
		measured := windowOf(counts(3000))
		measured.Underway = c.underway
		measured.Trends = map[string]*hist.Histogram{"publish_latency": latencyOf(3000), "e2e_latency": latencyOf(3000)}
		measured.Groups = []WindowGroup{{Group: "g", Deliveries: &Deliveries{Received: 3000}, Trends: map[string]*hist.Histogram{"e2e_latency": latencyOf(3000)}}}
		g := Account{Group: "g"}
		g.Received, g.Expected = 6000, 6000
		topic := Topic{
			Topic: "orders", OpenLoop: true, Counts: counts(6000),
			Trends: map[string]*hist.Histogram{"publish_latency": latencyOf(6000), "e2e_latency": latencyOf(6000)},
			Groups: []Group{{Account: g, Trends: map[string]*hist.Histogram{"e2e_latency": latencyOf(6000)}}},
			History: []Point{
				{At: 5, Seconds: 5, Counts: counts(2000)},
				{At: 10, Seconds: 5, Counts: counts(1000), Outstanding: c.outstanding},
				{At: 15, Seconds: 5, Counts: counts(3000)},
			},
			Phases: map[string]Window{Measure: measured, "rest": windowOf(counts(3000))},
		}
		if c.last {
			topic.History = topic.History[:2]
		}
		r := &Result{
			Seconds: 15, Topics: []Topic{topic},
			Phases: []Phase{{Name: Measure, Stretches: []Stretch{{0, 10}}, Seconds: 10}, {Name: "rest", Stretches: []Stretch{{10, 15}}, Seconds: 5}},
		}
		v := verdictOf(r)
		all := strings.Join(v.Reasons, "\n")
		if e2e, send := !strings.Contains(all, "end-to-end latency"), !strings.Contains(all, "publish latency"); e2e != c.e2e || send != c.send {
			t.Errorf("%+v: %s", c, all)
		}
		p, err := ParseCondition("p(50)<5")
		if err != nil {
			t.Fatal(err)
		}
		during := r.During(Measure)
		for trend, believed := range map[string]bool{"e2e_latency": c.e2e, "publish_latency": c.send} {
			portion := Portion{Topic: "orders", Histogram: latencyOf(3000)}
			if trend == "e2e_latency" {
				portion.Group = "g"
			}
			during.Verdict.Latencies = true // else nothing is decided
			if d := during.Latency(p, trend, []Portion{portion}); d.Held != believed {
				t.Errorf("%+v: %s p(50)<5: %+v", c, trend, d)
			}
		}
	}
}

// One group's give-backs say nothing of what another has not settled.
func TestGivenBackByAnotherGroup(t *testing.T) {
	a, b := Account{Group: "a"}, Account{Group: "b"}
	a.Received, a.Settled, a.Redelivered, a.Expected = 10_000, 10_000, 1000, 10_000
	b.Received, b.Settled, b.Expected = 10_000, 8_000, 10_000
	given := counts(10_000)
	given["requeued"] = 1000
	v := verdictOf(&Result{Topics: []Topic{{
		Topic: "orders", Counts: given, Trends: map[string]*hist.Histogram{}, Groups: []Group{{Account: a, Kept: true}, {Account: b, Kept: true}},
	}}})
	all := strings.Join(v.Notes, "\n")
	if strings.Contains(all, "given back") || !strings.Contains(all, "settled 8000 of 10000") {
		t.Error(all)
	}
}

// A process that was killed in a phase ends its stretch, and the phase goes on in the others: nothing was cut there.
func TestAPhaseThatOthersGoOnWith(t *testing.T) {
	var history []Point
	for i := range 19 {
		history = append(history, Point{At: float64(i + 1), Seconds: 1, Counts: counts(300), Outstanding: 500})
	}
	topic := Topic{History: history}
	if n := topic.outstanding(&Phase{Stretches: []Stretch{{2.3, 18.3}, {2.32, 6.04}, {2.31, 18.31}}}); n != 0 {
		t.Errorf("%d were outstanding where a phase ended that went on", n)
	}
	if n := topic.outstanding(&Phase{Stretches: []Stretch{{0, 2.3}, {0.1, 2.32}}}); n != 500 {
		t.Errorf("%d were outstanding at the end of the warm-up", n)
	}
}
