package result

import (
	"math"
	"testing"
)

// times are those of n that come together at each instant, a microsecond apart.
func times(n int, at ...float64) (all []float64) {
	for _, t := range at {
		for i := range n {
			all = append(all, t+float64(i)*1e-6)
		}
	}
	return all
}

// evenly are those of so many a second, from one instant to another.
func evenly(rate, from, to float64) (all []float64) {
	for i := 0.0; from+i/rate < to-1e-9; i++ {
		all = append(all, from+i/rate)
	}
	return all
}

func TestPeriod(t *testing.T) {
	for name, c := range map[string]struct {
		at   []float64
		rate float64
	}{
		"one by one":                       {evenly(1, 0, 5), 1},
		"at a high rate":                   {evenly(100_000, 0, 0.1), 100_000},
		"two batches":                      {times(100, 0, 1), 100},
		"batches":                          {times(100, 0, 1, 2, 3, 4), 100},
		"a backlog, then one by one":       {append(times(1000, 0), evenly(100, 0.01, 5)...), 1499 / 5.0},
		"a long pause":                     {append(evenly(100, 0, 5), evenly(100, 60, 65)...), 1000 / 65.0},
		"a batch each second, and a pause": {times(50, 0, 1, 2, 3, 30, 31, 32, 33), 400 / 34.0},
	} {
		var topic Topic
		for i := range 70 {
			p := Point{At: float64(i + 1), Seconds: 1, Counts: map[string]int64{}, Active: map[string]Activity{}}
			for j, at := range c.at {
				if at < float64(i) || at >= float64(i+1) {
					continue
				}
				p.Counts["confirmed"]++
				one := Activity{From: at, To: at}
				if j > 0 {
					if pause := at - c.at[j-1]; pause >= 100e-6 {
						one.Pauses, one.Longest, one.Squares = pause, pause, pause*pause
					}
				}
				p.Active["confirmed"] = p.Active["confirmed"].and(one)
			}
			topic.History = append(topic.History, p)
		}
		if n, seconds := topic.WentOn("confirmed"); math.Abs(n/seconds/c.rate-1) > 0.02 {
			t.Errorf("%s: %.0f in %.4f s, which is %.2f/s and not %.2f/s", name, n, seconds, n/seconds, c.rate)
		}
	}
}
