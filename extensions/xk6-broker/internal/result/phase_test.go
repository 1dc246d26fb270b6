package result

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

func windowOf(given map[string]int64, errors ...ErrorCount) Window {
	return Window{Counts: given, Errors: errors, Trends: map[string]*hist.Histogram{}}
}

func counts(n int64) map[string]int64 {
	return map[string]int64{"due": n, "sent": n, "confirmed": n, "received": n}
}

func verdictOf(r *Result) Verdict {
	if r.Phase(Measure) != nil {
		r.Leading = Measure
	}
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
			t.Errorf("%v: %v, %q", window, v.Valid, reasontest.Codes(v.Reasons))
		}
	}
}
