package result

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

// process is what one process of a test did in the phase "a", by its own clock, and by how much that began after the first's.
type process struct {
	later     float64
	at        []float64
	stretches []Stretch
}

// soon is when the first message comes, if not later: an activity of nothing has its first at 0.
const soon = 1e-4

// mergedOf is the topic of several processes with one phase, which have counted the same by each of the counters.
func mergedOf(t *testing.T, all []process, counters ...string) Topic {
	t.Helper()
	merged := Topic{OpenLoop: true, Counts: map[string]int64{}, Phases: map[string]Window{"a": {Counts: map[string]int64{}}}}
	for process, p := range all {
		topic := historyOf(p.at, p.stretches)
		in := slices.DeleteFunc(slices.Clone(p.at), func(at float64) bool {
			return !slices.ContainsFunc(p.stretches, func(s Stretch) bool { return at >= s.From && at < s.To })
		})
		topic.Counts, topic.Phases = map[string]int64{}, map[string]Window{"a": {Counts: map[string]int64{}}}
		w := merged.Phases["a"]
		for _, counter := range counters {
			topic.Counts[counter], topic.Phases["a"].Counts[counter] = int64(len(p.at)), int64(len(in))
			merged.Counts[counter] += int64(len(p.at))
			w.Counts[counter] += int64(len(in))
		}
		merged.Flows = addFlows(merged.Flows, &topic, process, p.later)
		during := topic.during(&Phase{Name: "a", Stretches: p.stretches})
		w.Flows = addFlows(w.Flows, &during, process, p.later)
		merged.Phases["a"] = w
		for _, point := range topic.History {
			for _, piece := range point.shifted(p.later).over(1) {
				merged.History = addCame(merged.History, piece, 1)
			}
		}
	}
	written, err := json.Marshal(&merged)
	if err != nil {
		t.Fatal(err)
	}
	var again Topic
	if err := json.Unmarshal(written, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

// The rate of processes together is that of the load of which each has a part, in the whole and in each phase, whatever their clocks, their intervals and the order in
// which they send.
func TestFlowsOfProcesses(t *testing.T) {
	comesBack := func(rate float64) []float64 {
		return slices.Concat(evenly(rate, 0.1, 3), evenly(9*rate, 3, 5), evenly(4*rate, 5, 7))
	}
	back := []Stretch{{0, 3}, {5, 9}}
	bursts := func(from float64) []float64 { return times(100, from, from+1, from+2, from+3, from+4) }
	long := []Stretch{{0, 20}}
	for name, c := range map[string]struct {
		all          []process
		whole, phase float64
	}{
		"bursts divided":        {[]process{{0, times(50, 0.2, 3.2), []Stretch{{0, 4.3}}}, {0, times(50, 1.2, 5), []Stretch{{0, 4.3}}}, {0, times(50, 2.2, 6), []Stretch{{0, 4.33}}}}, 300 / 7.05, 50},
		"divided, in long":      {[]process{{0, times(50, 0.2, 3.2, 6.2, 9.2), long}, {0, times(50, 1.2, 4.2, 7.2), long}, {0, times(50, 2.2, 5.2, 8.2), long}}, 50, 50},
		"divided, in step too":  {[]process{{0, times(17, 0.2, 1.2, 2.2, 3.2), long}, {0.03, times(17, 0.2, 1.2, 2.2, 3.2), long}, {0.01, times(16, 1.2, 2.2, 3.2), long}}, 184 / 4.0, 184 / 4.0},
		"two parts of a burst":  {[]process{{0, times(50, 2.9, 4.9), []Stretch{{0, 3}}}, {0.06, times(50, 2.9, 4.9), []Stretch{{0, 3}}}}, 200 / 4.0, 50},
		"short, apart":          {[]process{{0, evenly(150, 0, 5), []Stretch{{1, 1.4}}}, {0.09, evenly(150, 0, 5), []Stretch{{1, 1.4}}}}, 300, 300},
		"shorter, apart":        {[]process{{0, evenly(150, 0, 5), []Stretch{{1, 1.3}, {2, 2.3}}}, {0.3, evenly(150, 0, 5), []Stretch{{1, 1.3}, {2, 2.3}}}}, 300, 150},
		"by turns":              {[]process{{0, evenly(2, soon, 10), long}, {0, evenly(2, 0.25, 10), long}}, 4, 4},
		"few, by turns":         {[]process{{0, evenly(1, soon, 9), long}, {0, evenly(1, 1/3.0, 9), long}, {0, evenly(1, 2/3.0, 9), long}}, 3, 3},
		"bursts in step":        {[]process{{0, bursts(0.1), long}, {0.002, bursts(0.1), long}}, 200, 200},
		"bursts by turns":       {[]process{{0, bursts(0.1), long}, {0.5, bursts(0.1), long}}, 200, 200},
		"comes back":            {[]process{{0, comesBack(50), back}, {0.06, comesBack(50), back}}, 2 * 1445 / 6.9, 2 * 545 / 4.9},
		"comes back, apart":     {[]process{{0, comesBack(50), back}, {0.4, comesBack(50), back}}, 2 * 1445 / 6.9, 2 * 545 / 4.9},
		"a short phase":         {[]process{{0, evenly(50, soon, 9), []Stretch{{3, 3.75}}}, {0.08, evenly(50, soon, 9), []Stretch{{3, 3.75}}}}, 100, 100},
		"cut apart":             {[]process{{0, evenly(50, soon, 9), []Stretch{{0, 0.8}}}, {0, evenly(50, soon, 9), []Stretch{{0, 0.88}}}}, 100, 100},
		"one after the other":   {[]process{{0, evenly(100, soon, 5), long}, {5, evenly(100, soon, 5), long}}, 100, 100},
		"begun long apart":      {[]process{{0, evenly(50, soon, 9), []Stretch{{0, 3}}}, {1, evenly(50, soon, 9), []Stretch{{0, 3}}}}, 90, 75},
		"one ended early":       {[]process{{0, evenly(50, soon, 10), long}, {0, evenly(50, soon, 5), long}}, 75, 75},
		"one was not in it":     {[]process{{0, evenly(50, soon, 10), []Stretch{{2, 6}}}, {0, evenly(50, soon, 10), nil}}, 100, 50},
		"one stayed in it":      {[]process{{0, evenly(50, soon, 10), []Stretch{{0, 3}, {5, 8}}}, {0, evenly(50, soon, 10), []Stretch{{0, 3}}}}, 100, 450 / 6.0},
		"a slow one and a fast": {[]process{{0, evenly(1, 0.5, 10), long}, {0, evenly(100, soon, 10), long}}, 101, 101},
	} {
		for _, counters := range [][]string{{"confirmed"}, {"confirmed", "sent"}} {
			topic := mergedOf(t, c.all, counters...)
			if n, seconds := topic.WentOn("confirmed"); math.Abs(n/seconds/c.whole-1) > 0.01 {
				t.Errorf("%s: the whole is %.0f in %.4f s, which is %.2f/s and not %.2f/s", name, n, seconds, n/seconds, c.whole)
			}
			r := Result{Topics: []Topic{topic}, Phases: []Phase{{Name: "a"}}}
			for _, p := range c.all {
				for _, s := range p.stretches {
					r.Phases[0].Stretches = append(r.Phases[0].Stretches, Stretch{s.From + p.later, s.To + p.later})
				}
			}
			during := r.During("a")
			if n, seconds := during.Topics[0].WentOn("confirmed"); seconds > 0 != (c.phase < math.Inf(1)) || math.Abs(n/seconds/c.phase-1) > 0.01 {
				t.Errorf("%s: the phase is %.0f in %.4f s, which is %.2f/s and not %.2f/s", name, n, seconds, n/seconds, c.phase)
			}
			if n, seconds := during.WentOn("confirmed"); seconds > 0 != (c.phase < math.Inf(1)) || math.Abs(n/seconds/c.phase-1) > 0.01 {
				t.Errorf("%s: the phase of all topics is %.0f in %.4f s, which is %.2f/s and not %.2f/s", name, n, seconds, n/seconds, c.phase)
			}
		}
	}
}

// Batches that processes take by turns have the rate that they have in one process, in the whole, in a phase that comes back and in a part that is cut out afterwards.
func TestDividedBatchesAreAsOne(t *testing.T) {
	every := func(step, from, to float64) (all []float64) {
		for at := from; at < to-1e-9; at += step {
			all = append(all, at)
		}
		return all
	}
	for name, c := range map[string]struct {
		batches []float64
		size    int
		phase   []Stretch
		part    Stretch
		rate    float64 // of the part; 0 where it has too few batches
	}{
		"two loads":               {slices.Concat(every(0.7, 0.2, 4.2), every(1.7, 9, 15.5)), 30, []Stretch{{0, 8}}, Stretch{0, 8}, 0},
		"two loads, the second":   {slices.Concat(every(0.7, 0.2, 4.2), every(1.7, 9, 15.5)), 30, []Stretch{{8, 20}}, Stretch{8, 20}, 0},
		"quick ones":              {slices.Concat(every(0.3, 0.2, 3.2), every(1, 6, 12)), 60, []Stretch{{0, 5}}, Stretch{0, 5}, 60 / 0.3},
		"singles, and then those": {slices.Concat(every(0.03, 0.2, 3.2), every(1, 8.3, 14.3)), 60, []Stretch{{0, 4}, {8, 20}}, Stretch{8, 20}, 0},
		"one process in a part":   {every(2, 0.3, 10), 50, []Stretch{{0, 20}}, Stretch{0, 2}, 0},
		"singles":                 {every(0.4, 0.3, 18), 1, []Stretch{{0, 20}}, Stretch{1, 5}, 2.5},
		"batches, then evenly":    {slices.Concat(every(1, 0.2, 5.2), every(0.02, 5.2, 9)), 1, []Stretch{{0, 20}}, Stretch{5, 10}, 50},
		"a pause":                 {slices.Concat(every(0.02, 0.2, 3.2), every(0.02, 8.2, 11.2)), 1, []Stretch{{0, 20}}, Stretch{0, 6}, 50},
		"the end of a pause":      {slices.Concat(every(0.02, 0.2, 3.2), every(0.02, 8.2, 11.2)), 1, []Stretch{{0, 20}}, Stretch{4, 10}, 50},
	} {
		whole := process{0, times(c.size, c.batches...), c.phase}
		if name == "singles, and then those" {
			whole.at = slices.Concat(every(0.03, 0.2, 3.2), times(c.size, every(1, 8.3, 14.3)...))
		}
		divided := make([]process, 3)
		for i := range divided {
			divided[i].stretches = c.phase
		}
		batch, last := -1, math.Inf(-1)
		for _, at := range whole.at {
			if at-last > 0.001 {
				batch++
			}
			last = at
			divided[batch%3].at = append(divided[batch%3].at, at)
		}
		one, three := mergedOf(t, []process{whole}, "confirmed", "sent"), mergedOf(t, divided, "confirmed", "sent")
		phases := []Phase{{Name: "a", Stretches: c.phase}, {Name: "part", Stretches: []Stretch{c.part}, Afterwards: true}}
		for _, phase := range []string{"", "a"} {
			var rates []float64
			for _, topic := range []Topic{one, three} {
				r := &Result{Topics: []Topic{topic}, Phases: phases}
				if phase != "" {
					r = r.During(phase)
				}
				n, seconds := r.WentOn("confirmed")
				rates = append(rates, n/seconds)
			}
			if math.Abs(rates[1]/rates[0]-1) > 0.02 {
				t.Errorf("%s, phase %q: %.2f/s of one process, and %.2f/s of three", name, phase, rates[0], rates[1])
			}
		}
		r := (&Result{Topics: []Topic{three}, Phases: phases}).During("part")
		if n, seconds := r.WentOn("confirmed"); seconds > 0 != (c.rate > 0) || c.rate > 0 && math.Abs(n/seconds/c.rate-1) > 0.03 {
			t.Errorf("%s: a part is %.0f in %.4f s, which is %.2f/s and not %.2f/s", name, n, seconds, n/seconds, c.rate)
		}
	}
}

// What was on its way when a stretch of a phase ended makes that stretch as long as it was, and no other.
func TestAStretchThatIsCut(t *testing.T) {
	stretches := []Stretch{{0, 3}, {5, 30}}
	topic := historyOf(slices.Concat(evenly(33, soon, 3), evenly(66, 3, 5), evenly(133, 5, 7)), stretches)
	i := slices.IndexFunc(topic.History, func(p Point) bool { return p.At == 3 })
	topic.History[i].Underway.Sends, topic.History[i].Outstanding = 1, 1
	during := topic.during(&Phase{Name: "a", Stretches: stretches})
	if n, seconds := during.WentOn("confirmed"); n != 365 || math.Abs(seconds-5) > 0.01 {
		t.Errorf("%v in %v s", n, seconds)
	}
}

// A part that is cut out of the whole afterwards has the rate of what came in it.
func TestAPartOfAWholeHasItsRate(t *testing.T) {
	for _, s := range []Stretch{{2, 4}, {2, 11}, {0, 6}} {
		topic := mergedOf(t, []process{{0, evenly(500, soon, 8), []Stretch{{0, 2.6}}}, {0.05, evenly(500, soon, 8), []Stretch{{0, 2.6}}}}, "confirmed", "sent")
		r := &Result{Topics: []Topic{topic}, Phases: []Phase{{Name: "cut", Stretches: []Stretch{s}, Seconds: s.To - s.From, Afterwards: true}}}
		if n, seconds := r.During("cut").Topics[0].WentOn("confirmed"); math.Abs(n/1000-min(s.To, 8.025)+s.From) > 0.03 || math.Abs(n/seconds-1000) > 10 {
			t.Errorf("%v: %v in %v s", s, n, seconds)
		}
	}
}
