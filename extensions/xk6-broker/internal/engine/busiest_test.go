package engine

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// A process that saturates its CPUs under load measures itself, however idle it is before and after.
func TestCPUIsJudgedByItsWorstSeconds(t *testing.T) {
	for _, c := range []struct {
		loaded int
		share  float64
		valid  bool
	}{{10, 0.95, false}, {10, 0.85, true}, {2, 0.99, true}, {40, 0.91, false}} {
		var window busyWindow
		var history []result.Point
		for s := range 60 {
			point := result.Point{At: float64(s + 1), Seconds: 1, CPU: 0.02, Counts: map[string]int64{}}
			if s >= 20 && s < 20+c.loaded {
				window.add(c.share, 1)
				point.CPU, point.Busiest = c.share, window.last
			}
			history = append(history, point)
		}
		r := &result.Result{Topics: []result.Topic{{Counts: map[string]int64{"due": 1000, "sent": 1000, "confirmed": 1000}, History: history}}}
		if verdict.Judge(r, verdict.Circumstances{CPU: 0.1}); r.Verdict.Valid != c.valid {
			t.Errorf("%d seconds at %v: %+v", c.loaded, c.share, r.Verdict)
		}
	}
}
