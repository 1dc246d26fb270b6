package load

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/metric"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// phases cut a run in time. There is a collection at each cut, and what a collection brings belongs to the phase before it: the difference of
// two snapshots, as each second's is, so that the phases add up to the whole and a message costs nothing.
type phases struct {
	all   []*phase // in the order in which they began
	open  *phase
	began cut // the stretch of it that goes on
	cuts  int
}

// phase is what was measured in the stretches of a phase that are over.
type phase struct {
	name      string
	stretches []stretch
	series    map[*Series]*shelved
	groups    map[GroupKey]account.Account // of which only what grows counts
	hiccups   *hist.Histogram              // up to now; nil where nobody watched
	befallen  befallen                     // as the collector's
	squares   map[topicKey]*squares
}

// squares are those of the pauses of each counter that is timed, ms².
type squares [len(timed)]int64

// stretch is a time between two cuts.
type stretch struct{ from, to int64 }

// cut is how far everything was at an instant.
type cut struct {
	at     int64
	series map[*Series]*Measured
	groups map[GroupKey]account.Account
}

// There are no more phases than a reader can tell apart, and no more cuts than a run has time for.
const (
	mostPhases = 50
	mostCuts   = 1000
)

var errPhases = fmt.Errorf("phase: there are %d phases already, or %d changes from one to another", mostPhases, mostCuts)

// Begin begins a phase, or goes on with one of that name, and gives what every series measured since the last collection, which is of the
// phase before. It does nothing, and gives nothing, where the phase is the one that goes on. Phases may be begun at any time and by anybody.
func (c *Collector) Begin(name string) ([]Delta, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.phases
	if name == "" {
		return nil, errors.New("phase: it has no name")
	}
	if name == p.name() {
		return nil, nil
	}
	next := p.find(name)
	if p.cuts == mostCuts || next == nil && len(p.all) == mostPhases {
		return nil, errPhases
	}
	deltas := c.collect(true)
	if p.open == nil { // from the start of the run
		p.enter(result.Starting)
		p.began = cut{at: c.run.Started}
		p.watched(c.platform.seen(), c.befallen)
	}
	now := cut{c.last, c.seen, c.run.Counts()}
	p.open.add(p.began, now)
	c.run.phaseEnds(c.last, p.open.squares)
	p.enter(name)
	p.cuts++
	p.began = now
	p.began.series = make(map[*Series]*Measured, len(c.seen)) // the collector's own changes
	for s, m := range c.seen {
		p.began.series[s] = m
	}
	return deltas, nil
}

// Phase is the name of the phase that goes on; "" before any began.
func (c *Collector) Phase() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phases.name()
}

// During is what each series has measured so far in a phase, or in the whole run where it is ""; it is false where there is none of that name.
func (c *Collector) During(name string) (map[*Series]*Measured, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name == "" {
		return c.run.measured(), true
	}
	p := c.phases.find(name)
	if p == nil {
		return nil, false
	}
	return c.phases.measured(p, c.run.measured()), true
}

func (p *phases) name() string {
	if p.open == nil {
		return ""
	}
	return p.open.name
}

func (p *phases) find(name string) *phase {
	for _, one := range p.all {
		if one.name == name {
			return one
		}
	}
	return nil
}

func (p *phases) enter(name string) {
	if p.open = p.find(name); p.open == nil {
		p.open = &phase{name: name, series: map[*Series]*shelved{}, groups: map[GroupKey]account.Account{}, befallen: befallen{}, squares: map[topicKey]*squares{}}
		p.all = append(p.all, p.open)
	}
}

// watched adds what the witness saw of the platform, and what of it befell messages.
func (p *phases) watched(hiccups *hist.Histogram, befell befallen) {
	if p.open != nil {
		p.open.hiccups = hist.Merged(p.open.hiccups, hiccups)
		p.open.befallen.add(befell)
	}
}

// add adds what was measured between two cuts.
func (p *phase) add(from, to cut) {
	p.stretches = append(p.stretches, stretch{from.at, to.at})
	for s, m := range to.series {
		of := m.since(from.series[s])
		shelf := p.series[s]
		if shelf == nil {
			shelf = &shelved{}
			p.series[s] = shelf
		}
		shelf.add(&of)
	}
	for key, a := range to.groups {
		p.groups[key] = grown(p.groups[key], from.groups[key], a)
	}
}

// grown adds to an account what came between two others.
func grown(a, from, to account.Account) account.Account {
	a.Received += to.Received - from.Received
	a.Settled += to.Settled - from.Settled
	a.Duplicated += to.Duplicated - from.Duplicated
	a.Redelivered += to.Redelivered - from.Redelivered
	a.Reordered += to.Reordered - from.Reordered
	return a
}

// measured is what the series have measured in a phase, of all that they have until now.
func (p *phases) measured(of *phase, now map[*Series]*Measured) map[*Series]*Measured {
	all := make(map[*Series]*Measured, len(now))
	for s, m := range now {
		during := &Measured{Errors: map[ErrorLabels]int64{}}
		if of == p.open {
			d := m.since(p.began.series[s])
			during = &d
		}
		if shelf := of.series[s]; shelf != nil {
			shelf.addTo(during)
		}
		all[s] = during
	}
	return all
}

// shelved is what a series measured, put away in little room.
type shelved struct {
	counters [metric.NumCounters]int64
	trends   [metric.NumLoops][metric.NumTrends]hist.Packed
	errors   map[ErrorLabels]int64
}

func (s *shelved) add(m *Measured) {
	all := *m
	s.addTo(&all)
	s.counters, s.errors = all.Counters, all.Errors
	for l := range all.Trends {
		for t, h := range all.Trends[l] {
			if h != nil {
				s.trends[l][t] = h.Pack()
			}
		}
	}
}

// addTo adds all that was put away. It leaves alone what the distributions were that there are.
func (s *shelved) addTo(m *Measured) {
	for i, n := range s.counters {
		m.Counters[i] += n
	}
	m.Errors = result.Combined(m.Errors, s.errors, func(a, b int64) int64 { return a + b })
	for l := range s.trends {
		for t, packed := range s.trends[l] {
			if packed.Empty() {
				continue
			}
			h := &hist.Histogram{}
			h.Merge(m.Trends[l][t])
			packed.AddTo(h)
			m.Trends[l][t] = h
		}
	}
}

// measured is what all series have measured so far.
func (m *Meter) measured() map[*Series]*Measured {
	all := map[*Series]*Measured{}
	for _, s := range m.All() {
		all[s] = s.Measured()
	}
	return all
}

// used gives the phases, with what was measured in each, and when the first of them began. What was before the first one that was begun is none unless something was
// measured then, and what was due then is the next one's.
func (p *phases) used(now map[*Series]*Measured) (used []*phase, during map[*phase]map[*Series]*Measured, began int64) {
	during = map[*phase]map[*Series]*Measured{}
	for _, of := range p.all {
		during[of] = p.measured(of, now)
		if of.name == result.Starting && !anything(during[of]) {
			began = of.stretches[0].to
			continue
		}
		used = append(used, of)
	}
	return used, during, began
}

func anything(all map[*Series]*Measured) bool {
	for _, m := range all {
		if m.Counters != ([metric.NumCounters]int64{}) || m.Trends != (Distributions{}) || len(m.Errors) > 0 {
			return true
		}
	}
	return false
}

// stretches are those of a phase, as they are now.
func (p *phases) stretches(of *phase, now int64) []stretch {
	all := slices.Clone(of.stretches)
	if of == p.open {
		all = append(all, stretch{p.began.at, now})
	}
	return all
}

// described is a phase as a result has it, as it is now.
func (p *phases) described(of *phase, now, started int64) result.Phase {
	one := result.Phase{Name: of.name, Stretches: []result.Stretch{}}
	for _, s := range p.stretches(of, now) {
		one.Stretches = append(one.Stretches, result.Stretch{From: seconds(s.from - started), To: seconds(s.to - started)})
		one.Seconds += seconds(s.to - s.from)
	}
	one.Hiccups = hist.Merged(nil, of.hiccups)
	return one
}

// pauses is how long the pauses of each counter were in a phase, s, on average over its time.
func (p *phases) pauses(of *phase, key topicKey, all *activities, spans map[string]result.Span, stretches []result.Stretch) map[string]float64 {
	pauses := map[string]float64{}
	for i, c := range timed {
		span, length, sum := spans[c.String()], 0.0, int64(0)
		for _, s := range stretches {
			length += max(0, min(s.To, span.Last)-max(s.From, span.First))
		}
		if its := of.squares[key]; its != nil {
			sum = its[i]
		}
		if of == p.open && all != nil {
			sum += all[i].during.Load()
		}
		if length > 0 && sum > 0 {
			pauses[c.String()] = float64(sum) * 1e-6 / length
		}
	}
	return pauses
}

// window is what was measured of a topic in a phase. What had not been sent when the first of them began was not due before it.
func (p *phases) window(of *phase, began int64, key topicKey, crossings *crossings, open *open, driver string, groups []result.Group, series map[*Series]*Measured) result.Window {
	t := result.Topic{Counts: map[string]int64{}, Errors: []result.ErrorCount{}, Trends: map[string]*hist.Histogram{}}
	for _, g := range groups {
		t.Groups = append(t.Groups, result.Group{Account: account.Account{Group: g.Group}, Trends: map[string]*hist.Histogram{}})
	}
	for s, m := range series {
		if (topicKey{s.Broker, s.Topic}) == key {
			sumUp(&t, s, m)
		}
	}
	w := result.Window{Counts: t.Counts, Errors: t.Errors, Trends: t.Trends, Groups: []result.WindowGroup{}}
	var more int64
	for _, s := range p.stretches(of, math.MaxInt64) { // nothing comes after what goes on
		if s.from > began {
			more -= int64(crossings.at(s.from).Arrivals + open.until(s.from).Arrivals) //gosec:disable G115 -- a count
		}
		w.Underway = w.Underway.Plus(crossings.at(s.to)).Plus(open.until(s.to))
	}
	dueThen(w.Counts, more+int64(w.Underway.Arrivals)) //gosec:disable G115 -- a count
	for i, g := range t.Groups {
		at := GroupKey{key.address, driver, key.name, g.Group}
		a := of.groups[at]
		if of == p.open {
			a = grown(a, p.began.groups[at], groups[i].Account)
		}
		if g.Unordered {
			a.Reordered = 0
		}
		w.Groups = append(w.Groups, result.WindowGroup{
			Group: g.Group, Trends: g.Trends,
			Deliveries: &result.Deliveries{Received: a.Received, Settled: a.Settled, Duplicated: a.Duplicated, Redelivered: a.Redelivered, Reordered: a.Reordered},
		})
	}
	return w
}
