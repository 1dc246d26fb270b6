package result

import (
	"math"
	"slices"
	"testing"
)

// batches are those of so many that come together at each instant, which takes some seconds.
func batches(size int, length float64, at ...float64) (all []float64) {
	for _, t := range at {
		for i := range size {
			all = append(all, t+length*float64(i)/float64(size))
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

// spanOf is what is known of when things came.
func spanOf(all []float64) (s Span) {
	all = slices.Sorted(slices.Values(all))
	s = Span{First: all[0], Last: all[len(all)-1]}
	squares := 0.0
	for i := range all[1:] {
		squares += (all[i+1] - all[i]) * (all[i+1] - all[i])
	}
	if s.Last > s.First {
		s.Pause = squares / (s.Last - s.First)
	}
	return s
}

// pauseIn is what a phase has of the pauses, on average over its time between the first and the last.
func pauseIn(all []float64, stretches []Stretch) float64 {
	all = slices.Sorted(slices.Values(all))
	squares, length := 0.0, 0.0
	for i := range all[1:] {
		for _, s := range stretches {
			its := max(0, min(s.To, all[i+1])-max(s.From, all[i]))
			squares, length = squares+its*its, length+its
		}
	}
	return squares / max(length, 1e-9)
}

func inside(all []float64, stretches []Stretch) (n int64) {
	for _, at := range all {
		if slices.ContainsFunc(stretches, func(s Stretch) bool { return at >= s.From && at < s.To }) {
			n++
		}
	}
	return n
}

// wentOn is a result of one topic, where messages were sent and confirmed at some times, with a phase "a" of some stretches.
func wentOn(sent, confirmed []float64, stretches ...Stretch) *Result {
	r := &Result{Processes: 3, Instance: 1, Seconds: 40, Topics: []Topic{{OpenLoop: true, Counts: map[string]int64{}, Spans: map[string]Span{}, Phases: map[string]Window{"a": {Counts: map[string]int64{}, Pauses: map[string]float64{}}}}}}
	t := &r.Topics[0]
	for name, all := range map[string][]float64{"sent": sent, "confirmed": confirmed} {
		if len(all) == 0 {
			continue
		}
		t.Counts[name], t.Phases["a"].Counts[name], t.Spans[name] = int64(len(all)), inside(all, stretches), spanOf(all)
		t.Phases["a"].Pauses[name] = pauseIn(all, stretches)
	}
	r.Phases = []Phase{{Name: "a", Stretches: stretches}}
	return r
}

func rates(r *Result, counter string) (all []float64) {
	for _, of := range []*Result{r, r.During("a")} {
		for _, n := range []func(string) (float64, float64){of.WentOn, of.Topics[0].WentOn} {
			n, seconds := n(counter)
			all = append(all, n/seconds)
		}
	}
	return all
}

// A rate is of the time from the first message sent to the last that was counted, and that of a phase is of as much of it as it has. What happened in that time, as standstills,
// pauses and batches, changes nothing in it.
func TestARateIsOfTheTime(t *testing.T) {
	steady := evenly(200, 0, 10)
	stalled := func(from, to float64) (all []float64) {
		for _, at := range steady {
			if at >= from && at < to {
				at = to
			}
			all = append(all, at+0.001)
		}
		return all
	}
	blocked := slices.Concat(evenly(200, 0, 1), evenly(200, 5, 9)) // a full window kept it from sending
	bursts := batches(300, 0.03, 0, 2, 4, 6, 8)
	for name, c := range map[string]struct {
		sent, confirmed []float64
		stretches       []Stretch
		whole, phase    float64
	}{
		"steady":                               {steady, stalled(20, 20), []Stretch{{2, 7}}, 200, 200},
		"confirmed in lumps":                   {steady, stalled(3, 6.5), []Stretch{{2, 7}}, 200, 200},
		"confirmed in a lump, cut":             {steady, stalled(3, 6.5), []Stretch{{4, 20}}, 200, 1400 / 6.0},
		"a standstill at the start":            {steady, stalled(0, 3), []Stretch{{0, 5}}, 200, 200},
		"a standstill at the end":              {steady, stalled(8, 14), []Stretch{{5, 20}}, 2000 / 14.0, 1000 / 9.0},
		"nothing could be sent":                {blocked, blocked, []Stretch{{0.5, 20}}, 1000 / 9.0, 900 / 8.5},
		"nothing could be sent before the cut": {blocked, blocked, []Stretch{{3, 20}}, 1000 / 9.0, 800 / 6.0},
		"it comes again":                       {steady, steady, []Stretch{{1, 3}, {6, 9}}, 200, 200},
		"one burst in a phase":                 {bursts, bursts, []Stretch{{3.5, 5.5}}, 1500 / 8.03, 150},
		"two bursts in a phase":                {bursts, bursts, []Stretch{{3.5, 7.5}}, 1500 / 8.03, 150},
		"a phase before the first":             {evenly(50, 5, 10), evenly(50, 5, 10), []Stretch{{0, 7}}, 50, 50},
		"a phase behind the last":              {evenly(50, 5, 10), evenly(50, 5, 10), []Stretch{{7, 30}}, 50, 50},
		"confirmed before it was sent":         {evenly(10, 8, 10), evenly(50, 0, 10), []Stretch{{5, 30}}, 50, 50}, // as what others sent is received
		"lumps, and a phase of one":            {steady, batches(200, 0, 2, 4, 6, 8, 10.02), []Stretch{{9.9, 30}}, 1000 / 10.02, math.Inf(1)},
		"lumps, and a long phase":              {steady, batches(200, 0, 2, 4, 6, 8, 10.02), []Stretch{{3, 30}}, 1000 / 10.02, 800 / 7.02},
		"nothing but confirmations":            {nil, evenly(50, 5, 10), []Stretch{{7, 30}}, 50, 50},
		"few":                                  {evenly(1, 0, 10), evenly(1, 0, 10), []Stretch{{3.5, 30}}, 1, 6 / 6.5},
		"a burst":                              {batches(300, 0.03, 5), batches(300, 0.03, 5), []Stretch{{0, 20}}, 10_000, 10_000},
		"an instant":                           {batches(300, 0.003, 5), batches(300, 0.003, 5), []Stretch{{0, 20}}, math.Inf(1), math.Inf(1)},
		"a burst at the end":                   {bursts, bursts, []Stretch{{7.9, 20}}, 1500 / 8.03, math.Inf(1)},
	} {
		for i, rate := range rates(wentOn(c.sent, c.confirmed, c.stretches...), "confirmed") {
			if want := []float64{c.whole, c.whole, c.phase, c.phase}[i]; rate != want && !(math.Abs(rate/want-1) < 0.006) {
				t.Errorf("%s: %d. rate: %.2f/s, and not %.2f/s", name, i, rate, want)
			}
		}
	}
}

// Whatever becomes of a load in one process, phases that share out its time have the rates of which its own is the mean.
func TestRatesOfPhasesAddUp(t *testing.T) {
	sent := slices.Concat(evenly(100, 0.3, 3), batches(70, 0.2, 4, 4.7, 6, 9.1), evenly(1000, 12, 12.5))
	whole, seconds := wentOn(sent, sent).WentOn("confirmed")
	sum, all := 0.0, 0.0
	for _, s := range []Stretch{{0, 2.2}, {2.2, 4.1}, {4.1, 9}, {9, 11}, {11, 40}} {
		n, length := wentOn(sent, sent, s).During("a").WentOn("confirmed")
		sum, all = sum+n, all+length
	}
	if sum != whole || math.Abs(all-seconds) > 1e-6 || math.Abs(seconds-12.21) > 0.01 {
		t.Errorf("%v in %v s, and by phases %v in %v s", whole, seconds, sum, all)
	}
}

// The rate of processes together is that of all messages in the time from the first of all to the last, and in a phase that each begins by its own clock in the time that they
// have on average.
func TestRatesOfProcesses(t *testing.T) {
	even := func(rate, from, to float64, stretches ...Stretch) *Result {
		return wentOn(evenly(rate, from, to), evenly(rate, from, to), stretches...)
	}
	for name, c := range map[string]struct {
		all          []*Result
		later        float64 // how long after the first each begins
		whole, phase float64
	}{
		"one load":              {[]*Result{even(100, 0, 10, Stretch{3, 8}), even(50, 0, 10, Stretch{3, 8})}, 0, 150, 150},
		"phases that are apart": {[]*Result{even(50, 0, 10, Stretch{3, 4}), even(50, 0, 10, Stretch{3.09, 4.1})}, 0, 100, 100},
		"clocks that are apart": {[]*Result{even(50, 0, 10, Stretch{3, 4}), even(50, 0, 10, Stretch{2.9, 3.9})}, 0.1, 1000 / 10.1, 100},
		"to the end":            {[]*Result{even(50, 0, 10, Stretch{2, 40}), even(50, 0, 10, Stretch{2.1, 40})}, 0, 100, 100},
		"one behind the other":  {[]*Result{even(100, 0, 5, Stretch{1, 4}), even(100, 5, 10, Stretch{1, 4})}, 0, 100, 100},
		"one only consumes":     {[]*Result{wentOn(evenly(100, 0, 10), nil, Stretch{1, 4}), wentOn(nil, evenly(100, 0.01, 12), Stretch{1, 4})}, 0, 100, 100},
		"bursts by turns":       {[]*Result{wentOn(batches(50, 0.1, 0, 2, 4, 6), batches(50, 0.1, 0, 2, 4, 6), Stretch{1.5, 5.5}), wentOn(batches(50, 0.1, 1, 3, 5, 7), batches(50, 0.1, 1, 3, 5, 7), Stretch{1.5, 5.5})}, 0, 400 / 7.1, 50},
		"a, b and a":            {[]*Result{even(50, 0, 10, Stretch{0, 3}, Stretch{5, 8}), even(50, 0, 10, Stretch{0, 3}, Stretch{5, 8})}, 0, 100, 100},
	} {
		merged := &Result{Seconds: 40 + c.later, Topics: []Topic{{OpenLoop: true, Counts: map[string]int64{}, Spans: map[string]Span{}}}}
		for i, r := range c.all {
			shift := float64(i) * c.later
			merged.joinPhases(r, shift)
			merged.Topics[0].joinSpans(&r.Topics[0], shift)
			merged.Topics[0].joinWindows(merged, &r.Topics[0], func(name string) string { return name })
			for name, n := range r.Topics[0].Counts {
				merged.Topics[0].Counts[name] += n
			}
		}
		for i, rate := range rates(merged, "confirmed") {
			if want := []float64{c.whole, c.whole, c.phase, c.phase}[i]; !(math.Abs(rate/want-1) < 0.011) {
				t.Errorf("%s: %d. rate: %.2f/s, and not %.2f/s", name, i, rate, want)
			}
		}
	}
}
