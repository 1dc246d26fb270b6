package load

import (
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// A process that saturates its CPUs under load measures itself, however idle it is before and after.
func TestCPUIsJudgedByItsWorstSeconds(t *testing.T) {
	history := func(loaded int, share float64, width int) []result.Point {
		line := newTimeline(1)
		line.width = width
		for s := range int64(60) {
			i := &interval{from: s * int64(time.Second), to: (s + 1) * int64(time.Second), cpu: 0.02}
			if s >= 20 && s < 20+int64(loaded) {
				i.cpu, i.counts[metric.Due] = share, 1000
			}
			line.add(i, nil)
		}
		return history(line.all(), 0, newEdges().of(topicKey{}), nil)
	}
	for _, c := range []struct {
		loaded int
		share  float64
		valid  bool
	}{{10, 0.95, false}, {10, 0.85, true}, {2, 0.99, true}, {40, 0.91, false}} {
		for _, width := range []int{1, 16} { // also where the history has lost its seconds
			r := &result.Result{Topics: []result.Topic{{
				Counts: map[string]int64{"due": 1000, "sent": 1000, "confirmed": 1000}, History: history(c.loaded, c.share, width),
			}}}
			if r.Judge(result.Circumstances{CPU: 0.1}); r.Verdict.Valid != c.valid {
				t.Errorf("%d seconds at %v: %+v", c.loaded, c.share, r.Verdict)
			}
		}
	}
}
