package result

import (
	"math"
	"slices"
	"testing"
)

// beside are two loads that do not know of each other.
func beside(a, b []float64) []float64 { return slices.Sorted(slices.Values(slices.Concat(a, b))) }

// slowly are those of n that come together at each instant, which takes a part of a second.
func slowly(n int, part float64, at ...float64) (all []float64) {
	for _, t := range at {
		all = append(all, evenly(float64(n)/part, t, t+part)...)
	}
	return all
}

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

// What was before a phase is none of its load: not the pause before it, unless all are like that, and not what went on between its stretches.
func TestPeriodOfPhases(t *testing.T) {
	bursts := times(100, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	for name, c := range map[string]struct {
		at        []float64
		stretches []Stretch
		rate      float64
	}{
		"three batches":                     {bursts, []Stretch{{3.5, 6.7}}, 100},
		"two batches":                       {bursts, []Stretch{{3.5, 5.5}}, 100},
		"one batch":                         {bursts, []Stretch{{3.5, 4.5}}, 100},
		"after a pause":                     {slices.Concat(evenly(100, 0, 2), evenly(100, 8, 11)), []Stretch{{5, 12}}, 100},
		"shorter than a pause":              {slices.Concat(evenly(100, 0, 2), evenly(100, 8, 8.5)), []Stretch{{5, 12}}, 100},
		"after one message":                 {slices.Concat([]float64{0}, evenly(100, 28, 31)), []Stretch{{0, 40}}, 301 / 31.0},
		"in two stretches":                  {evenly(100, 0, 9), []Stretch{{0, 3}, {6, 9}}, 100},
		"batches after more than one pause": {slices.Concat(times(50, 0.2, 1.2, 2.2, 3.2), times(50, 5.2, 6.2, 7.2, 8.2)), []Stretch{{4.3, 12}}, 50},
		"that comes back":                   {slices.Concat(evenly(100, 0, 3), evenly(900, 3, 5), evenly(400, 5, 7)), []Stretch{{0, 3}, {5, 9}}, 1100 / 5.0},
		"slow, then faster":                 {slices.Concat(evenly(33, 0, 3), evenly(133, 5, 7)), []Stretch{{0, 3}, {5, 9}}, 365 / 5.0},
		"batches, in two":                   {bursts, []Stretch{{0, 2.5}, {5.5, 9.5}}, 700 / 7.0},
	} {
		topic := historyOf(c.at, c.stretches)
		during := topic.during(&Phase{Name: "one", Stretches: c.stretches})
		if n, seconds := during.WentOn("confirmed"); math.Abs(n/seconds/c.rate-1) > 0.02 {
			t.Errorf("%s: %.0f in %.4f s, which is %.2f/s and not %.2f/s", name, n, seconds, n/seconds, c.rate)
		}
	}
}

// historyOf is what a process knows that had a phase in some stretches, of which each cuts an interval.
func historyOf(all []float64, stretches []Stretch) (topic Topic) {
	edges := []float64{}
	for i := range 40 {
		edges = append(edges, float64(i+1))
	}
	for _, s := range stretches {
		edges = append(edges, s.From, s.To)
	}
	slices.Sort(edges)
	last := 0.0
	for _, edge := range slices.Compact(edges) {
		if edge == 0 {
			continue
		}
		p := Point{At: edge, Seconds: edge - last, Counts: map[string]int64{}, Active: map[string]Activity{}}
		p.count("confirmed", all)
		p.count("sent", all)
		topic.History, last = append(topic.History, p), edge
	}
	return topic
}

// count adds what happens in the interval.
func (p Point) count(name string, all []float64) {
	for i, at := range all {
		if at < p.At-p.Seconds || at >= p.At {
			continue
		}
		p.Counts[name]++
		one := Activity{From: at, To: at}
		if i > 0 {
			if pause := at - all[i-1]; pause >= 66e-6 {
				one.Pauses = map[int]Pauses{int(math.Log2(pause * 1e9)): {1, pause}}
				one.Before = pause
				if pause >= LeastGap {
					one.Gaps = []Gap{{all[i-1], at}}
				}
			}
		}
		p.Active[name] = p.Active[name].and(one)
	}
}

func TestPeriod(t *testing.T) {
	for name, c := range map[string]struct {
		at   []float64 // confirmed
		rate float64
		sent []float64 // at is, if nil
	}{
		"one by one":                       {evenly(1, 0, 5), 1, nil},
		"at a high rate":                   {evenly(100_000, 0, 0.1), 100_000, nil},
		"two batches":                      {times(100, 0, 1), 100, nil},
		"batches":                          {times(100, 0, 1, 2, 3, 4), 100, nil},
		"a backlog, then one by one":       {append(times(1000, 0), evenly(100, 0.01, 5)...), 1499 / 5.0, nil},
		"a long pause":                     {append(evenly(100, 0, 5), evenly(100, 60, 65)...), 1000 / 65.0, nil},
		"a batch each second, and a pause": {times(50, 0, 1, 2, 3, 30, 31, 32, 33), 400 / 34.0, nil},
		"two long pauses":                  {slices.Concat(evenly(60, 0, 5), evenly(60, 10, 15), evenly(60, 20, 25)), 900 / 25.0, nil},
		"mostly pauses":                    {slices.Concat(evenly(60, 0, 2), evenly(60, 20, 22), evenly(60, 40, 42), evenly(60, 60, 62)), 480 / 62.0, nil},
		"batches, and two pauses":          {times(50, 0, 1, 2, 3, 20, 21, 22, 23, 40, 41, 42, 43), 600 / 44.0, nil},
		"batches at about a second":        {times(50, 0, 1.07, 2.14, 3.22), 200 / 4.29, nil},
		"two loads in step":                {beside(times(100, 0, 1, 2, 3, 4), times(100, 0.001, 1.001, 2.001, 3.001, 4.001)), 200, nil},
		"two loads by turns":               {beside(times(100, 0, 1, 2, 3, 4), times(100, 0.5, 1.5, 2.5, 3.5, 4.5)), 200, nil},
		"two loads, close together":        {beside(times(100, 0, 1, 2, 3, 4), times(100, 0.1, 1.1, 2.1, 3.1, 4.1)), 200, nil},
		"three loads, close together":      {beside(times(50, 0, 1, 2, 3, 4), beside(times(50, 0.1, 1.1, 2.1, 3.1, 4.1), times(50, 0.2, 1.2, 2.2, 3.2, 4.2))), 150, nil},
		"two loads, every two seconds":     {beside(times(50, 0, 2, 4, 6, 8), times(50, 0.5, 2.5, 4.5, 6.5, 8.5)), 50, nil},
		"two loads, the last by itself":    {beside(times(100, 0, 1, 2, 3, 4), times(100, 0.1, 1.1, 2.1, 3.1)), 900 / 4.1, nil},
		"smooth, stopped for long":         {slices.Concat(evenly(400, 0.01, 0.07), evenly(400, 3.01, 3.05)), 40 / 5.99, evenly(400, 0.01, 6)},
		"slow batches":                     {slowly(100, 0.3, 0, 1, 2, 3, 4), 500 / 5.0, times(100, 0, 1, 2, 3, 4)},
	} {
		if c.sent == nil {
			c.sent = c.at
		}
		var topic Topic
		for i := range 70 {
			p := Point{At: float64(i + 1), Seconds: 1, Counts: map[string]int64{}, Active: map[string]Activity{}}
			p.count("confirmed", c.at)
			p.count("sent", c.sent)
			topic.History = append(topic.History, p)
		}
		if n, seconds := topic.WentOn("confirmed"); math.Abs(n/seconds/c.rate-1) > 0.02 {
			t.Errorf("%s: %.0f in %.4f s, which is %.2f/s and not %.2f/s", name, n, seconds, n/seconds, c.rate)
		}
	}
}

// What comes of a load has its time: bursts that come in several lumps are no faster for it, and what stops for a while is no slower.
func TestWhatComesOfALoadHasItsTime(t *testing.T) {
	lumps := func(from float64) (all []float64) { // 300, in four parts over a tenth of a second
		for i := range 4 {
			all = append(all, times(75, from+0.03*float64(i))...)
		}
		return all
	}
	bursts := []float64{0.3, 2.3, 4.3, 6.3, 8.3}
	var inLumps []float64
	for _, at := range bursts {
		inLumps = append(inLumps, lumps(at+0.005)...)
	}
	steady := evenly(1000, soon, 8)
	stalled := slices.Clone(steady) // which the broker answers together, when it has answered nothing for 0.2 or 0.7 s
	for i, at := range stalled {
		round := 0.9 * math.Floor(at/0.9)
		stalled[i] = round + 0.9 + float64(i)*1e-9
		if at < round+0.2 {
			stalled[i] = round + 0.2 + float64(i)*1e-9
		}
	}
	for name, c := range map[string]struct {
		sent, came []float64
		stretch    Stretch
		rate       float64
	}{
		"a burst in lumps":         {times(300, bursts...), inLumps, Stretch{3.3, 5.3}, 150},
		"the first":                {times(300, bursts...), inLumps, Stretch{0, 1.3}, 150},
		"the last":                 {times(300, bursts...), inLumps, Stretch{7.3, 20}, 150},
		"all":                      {times(300, bursts...), inLumps, Stretch{0, 20}, 150},
		"steady, with standstills": {steady, stalled, Stretch{0, 20}, 1000},
	} {
		topic := Topic{OpenLoop: true}
		edges := slices.Sorted(slices.Values([]float64{1, 2, c.stretch.From, 3, 4, 5, c.stretch.To, 6, 7, 8, 9, 10}))
		last := 0.0
		for _, edge := range slices.Compact(edges) {
			if edge == 0 {
				continue
			}
			p := Point{At: edge, Seconds: edge - last, Counts: map[string]int64{}, Active: map[string]Activity{}}
			p.count("sent", c.sent)
			p.count("confirmed", c.came)
			topic.History, last = append(topic.History, p), edge
		}
		during := topic.during(&Phase{Name: "a", Stretches: []Stretch{c.stretch}})
		for _, counter := range []string{"sent", "confirmed"} {
			if n, seconds := during.WentOn(counter); math.Abs(n/seconds/c.rate-1) > 0.02 {
				t.Errorf("%s, %s: %.0f in %.4f s, which is %.2f/s and not %.2f/s", name, counter, n, seconds, n/seconds, c.rate)
			}
		}
	}
}
