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
		var sents, lateSents, answers, lateAnswers, times, lateTimes hist.Histogram
		for range 200_000 {
			due := time.Duration(random.Int64N(int64(1000 * c.every)))
			sent := end(due)
			done := end(sent + c.latency)
			lag.Record(int64(sent - due))
			latencies.Record(int64(done - due))
			late.Record(int64(done - due - c.latency))
			sents.Record(int64(done - sent))
			lateSents.Record(int64(done - sent - c.latency))
			done = end(end(sent+c.latency/2) + c.latency/2)
			answers.Record(int64(done - due))
			lateAnswers.Record(int64(done - due - c.latency))
			times.Record(int64(done - sent))
			lateTimes.Record(int64(done - sent - c.latency))
			at := time.Duration(random.Int64N(int64(1000 * c.every)))
			hiccups.Record(int64(end(at) - at))
		}
		for what, of := range map[string]struct {
			values, late, begin *hist.Histogram
			ends                int
		}{"latency": {&latencies, &late, &lag, 1}, "answered": {&answers, &lateAnswers, &lag, 2}, "from when it was sent": {&sents, &lateSents, nil, 1}, "answered, from when it was sent": {&times, &lateTimes, nil, 2}} {
			for _, q := range shownQuantiles {
				if q == 1 || !of.values.Supported(q) {
					continue
				}
				value := of.values.Quantile(q)
				told := lateness(of.begin, &hiccups, of.ends, q, value)
				// Where it is clear what misleads, also a tenth of the values before and behind it, that is told, and nothing else is.
				least, most := of.late.Quantile(q-(1-q)/10), of.late.Quantile(q+(1-q)/10)
				owed := float64(told) / float64(value)
				if float64(least)/float64(value) > 1.5*OwedShare && owed <= OwedShare || float64(most)/float64(value) < OwedShare/1.5 && owed > OwedShare {
					t.Errorf("%s, %s: %v of the p%v, which is %v, are told to be lateness, and %v to %v are", name, what, time.Duration(told), 100*q, time.Duration(value), time.Duration(least), time.Duration(most))
				}
			}
		}
	}
}
