package verdict

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

func windowOf(given map[string]int64, errors ...result.ErrorCount) result.Window {
	return result.Window{Counts: given, Errors: errors, Trends: map[string]*hist.Histogram{}}
}

func counts(n int64) map[string]int64 {
	return map[string]int64{"due": n, "sent": n, "confirmed": n, "received": n}
}

func verdictOf(r *result.Result) result.Verdict {
	if r.Phase(result.Measure) != nil {
		r.Leading = result.Measure
	}
	Judge(r, Circumstances{})
	return r.Verdict
}

// A window of failures only, as of a broker that froze before it, is not valid.
func TestAWindowOfFailures(t *testing.T) {
	v := verdictOf(&result.Result{
		Topics: []result.Topic{{
			Topic: "orders", OpenLoop: true, Counts: counts(1000), Errors: []result.ErrorCount{{Op: "send", Kind: "timeout", Count: 100}}, Trends: map[string]*hist.Histogram{},
			Phases: map[string]result.Window{result.WarmUp: windowOf(counts(1000)), result.Measure: windowOf(map[string]int64{}, result.ErrorCount{Op: "send", Kind: "timeout", Count: 100})},
		}},
		Phases: []result.Phase{{Name: result.WarmUp, Seconds: 30}, {Name: result.Measure, Seconds: 30}},
	})
	if v.Valid || v.Latencies {
		t.Errorf("%+v", v)
	}
}

// A generator that measured itself is seen in a window that no interval of the history is wholly in.
func TestAWindowWithinAnInterval(t *testing.T) {
	var history []result.Point
	for i := range 64 {
		history = append(history, result.Point{At: float64(i+1) * 16, Seconds: 16, Counts: counts(16), Busiest: map[bool]float64{true: 0.99, false: 0.1}[i == 6]})
	}
	for window, want := range map[result.Stretch]bool{{From: 100, To: 111}: false, {From: 120, To: 127}: true} {
		v := verdictOf(&result.Result{
			Seconds: 1024,
			Topics: []result.Topic{{
				Topic: "orders", OpenLoop: true, Counts: counts(1024), History: history, Trends: map[string]*hist.Histogram{},
				Phases: map[string]result.Window{result.Starting: windowOf(counts(500)), result.Measure: windowOf(counts(500)), "rest": windowOf(counts(24))},
			}},
			Phases: []result.Phase{
				{Name: result.Starting, Stretches: []result.Stretch{{From: 0, To: window.From}}},
				{Name: result.Measure, Stretches: []result.Stretch{window}, Seconds: window.To - window.From},
				{Name: "rest", Stretches: []result.Stretch{{From: window.To, To: 1024}}},
			},
		})
		if v.Valid != want {
			t.Errorf("%v: %v, %q", window, v.Valid, reasontest.Codes(v.Reasons))
		}
	}
}
