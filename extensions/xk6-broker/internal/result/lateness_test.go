package result

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Of messages that are due at any time, and are answered after a latency, standstills hold up some when they are due, and some when their answer comes. What the
// latencies owe to that is known here, as it is not in a run.
func TestLateness(t *testing.T) {
	for name, c := range map[string]struct {
		latency, standstill, every time.Duration
	}{
		"both ends, apart":              {80 * time.Millisecond, 100 * time.Millisecond, 1500 * time.Millisecond},
		"a latency that outlasts many":  {time.Second, 20 * time.Millisecond, 300 * time.Millisecond},
		"one standstill holds up both":  {time.Millisecond, 500 * time.Millisecond, 60 * time.Second},
		"long standstills, and seldom":  {50 * time.Millisecond, 2 * time.Second, 100 * time.Second},
		"hardly any":                    {5 * time.Millisecond, 10 * time.Millisecond, 100 * time.Second},
		"as long as what they hold up":  {100 * time.Millisecond, 100 * time.Millisecond, 2 * time.Second},
		"more than half the time stood": {40 * time.Millisecond, 60 * time.Millisecond, 100 * time.Millisecond},
	} {
		random := rand.New(rand.NewPCG(1, 2)) //gosec:disable G404 -- a simulation
		// end is when one is served that comes at a time: at once, or after the standstill.
		end := func(at time.Duration) time.Duration {
			if into := at % c.every; into < c.standstill {
				return at - into + c.standstill
			}
			return at
		}
		var lag, hiccups, latencies, late hist.Histogram
		for range 200_000 {
			due := time.Duration(random.Int64N(int64(1000 * c.every)))
			sent := end(due)
			done := end(sent + c.latency)
			lag.Record(int64(sent - due))
			latencies.Record(int64(done - due))
			late.Record(int64(done - due - c.latency))
			at := time.Duration(random.Int64N(int64(1000 * c.every)))
			hiccups.Record(int64(end(at) - at))
		}
		for _, q := range shownQuantiles {
			value, truth := latencies.Quantile(q), late.Quantile(q)
			told := lateness(&lag, &hiccups, q, value)
			if q == 1 {
				continue
			}
			// Where it is clear what misleads, that is told, and nothing else is.
			share, owed := float64(truth)/float64(value), float64(told)/float64(value)
			if share > 1.5*OwedShare && owed <= OwedShare || share < OwedShare/1.5 && owed > OwedShare {
				t.Errorf("%s: %v of the p%v, which is %v, are told to be lateness, and %v are", name, time.Duration(told), 100*q, time.Duration(value), time.Duration(truth))
			}
		}
	}
}
