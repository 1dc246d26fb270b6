package result

import (
	"cmp"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// The names of phases that mean something.
const (
	Starting = "start"    // what was before the first phase that had a name
	WarmUp   = "warmup"   // what is in no measured window
	Measure  = "measured" // the measured window: what a verdict, where there is one, and the tables are about first
)

// Phase is a part of the run's time: one stretch or, where it came again, several. The phases of a run cover all of it, and share nothing.
type Phase struct {
	Name      string          `json:"name"`
	Stretches []Stretch       `json:"stretches"`
	Processes int             `json:"processes,omitempty"` // whose stretches these are, of several
	Seconds   float64         `json:"seconds"`             // of all its stretches
	Hiccups   *hist.Histogram `json:"hiccups,omitempty"`   // of the platform

	Afterwards bool `json:"-"` // it was cut out of the run when that was over, beside its phases
	About      bool `json:"-"` // and what it has is not what was counted in just that time
}

// Stretch is the time between two instants, in seconds from the start.
type Stretch struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Window is what was measured of a topic in a phase. Those of all phases add up to what was measured in the run.
type Window struct {
	Counts      map[string]int64           `json:"counts"`
	Errors      []ErrorCount               `json:"errors"`
	Trends      map[string]*hist.Histogram `json:"trends"`
	Percentiles map[string][]Percentile    `json:"percentiles"`
	Hiccups     map[string]*hist.Histogram `json:"hiccups,omitempty"` // as those of a topic
	Groups      []WindowGroup              `json:"groups"`
	Underway    Underway                   `json:"underway"`         // when its stretches ended
	Pauses      map[string]float64         `json:"pauses,omitempty"` // of each counter that has a span: as that of the span, in the phase
}

// WindowGroup is what can be told of a group in a phase. What was lost is known of the whole run only: a message that did not come did not
// come at any time.
type WindowGroup struct {
	Group       string                     `json:"group"`
	*Deliveries                            // nil of several processes, whose messages only the ledgers tell apart, and these know no phases
	Trends      map[string]*hist.Histogram `json:"trends"`
	Percentiles map[string][]Percentile    `json:"percentiles"`
	Hiccups     map[string]*hist.Histogram `json:"hiccups,omitempty"` // as those of a group
}

// Deliveries are what an account counts as it happens.
type Deliveries struct {
	Received    uint64 `json:"received"`
	Settled     uint64 `json:"settled"`
	Duplicated  uint64 `json:"duplicated"`
	Redelivered uint64 `json:"redelivered"`
	Reordered   uint64 `json:"reordered"`
}

// Phase finds a phase; nil where the run has none of that name.
func (r *Result) Phase(name string) *Phase {
	i := slices.IndexFunc(r.Phases, func(p Phase) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Phases[i]
}

// Led is the run as it was in the phase that leads, or as a whole where none does.
func (r *Result) Led() *Result {
	if r.Leading == "" {
		return r
	}
	return r.During(r.Leading)
}

// During is the run as it was in a phase; nil where there is none of that name. Of the account only copies are of the phase: what did not
// come may be any phase's.
func (r *Result) During(name string) *Result {
	p := r.Phase(name)
	if p == nil {
		return nil
	}
	during := *r
	during.Seconds, during.Phases, during.Leading = p.Seconds, nil, ""
	if r.Platform != nil {
		platform := *r.Platform
		platform.Hiccups = p.Hiccups
		during.Platform = &platform
	}
	during.Topics = make([]Topic, len(r.Topics))
	for i := range r.Topics {
		during.Topics[i] = r.Topics[i].during(p)
	}
	return &during
}

// during is the topic as it was in a phase. Of one that was not used then there is nothing.
func (t *Topic) during(p *Phase) Topic {
	w := t.Phases[p.Name]
	during := *t
	during.whole, during.phase, during.Phases, during.Hiccups, during.Seen = t, p, nil, w.Hiccups, p.Hiccups
	during.Underway = nil
	during.cut = cut{w.Underway, t.outstanding(p)}
	during.Counts, during.Errors, during.Trends, during.Percentiles = w.Counts, w.Errors, w.Trends, w.Percentiles
	during.History, during.OverTime = within(t.History, p), map[string][]Summary{}
	for name, all := range t.OverTime {
		during.OverTime[name] = within(all, p)
	}
	during.Groups = slices.Clone(t.Groups)
	for i := range during.Groups {
		g := &during.Groups[i]
		k := slices.IndexFunc(w.Groups, func(of WindowGroup) bool { return of.Group == g.Group })
		of := WindowGroup{}
		if k >= 0 {
			of = w.Groups[k]
		}
		if of.Deliveries == nil {
			of.Deliveries = &Deliveries{}
		}
		g.Received, g.Settled, g.Duplicated, g.Redelivered, g.Reordered = of.Received, of.Settled, of.Duplicated, of.Redelivered, of.Reordered
		g.Trends, g.Percentiles, g.Hiccups = of.Trends, of.Percentiles, of.Hiccups
	}
	return during
}

// cut is what was on its way when the stretches of a phase ended: what is measured of it belongs to what comes after.
type cut struct {
	Underway
	outstanding uint64 // of what was confirmed, that groups had not received
}

// outstanding is what groups had not received of what was confirmed when the stretches of a phase ended that something came after, at most: the most
// in the interval before.
func (t *Topic) outstanding(p *Phase) (n uint64) {
	for _, s := range p.union() {
		i := slices.IndexFunc(t.History, func(of Point) bool { return of.At >= s.To-edge })
		if i >= 0 && i < len(t.History)-1 { // else it went on to the end
			n += t.History[i].Outstanding
		}
	}
	return n
}

// sending is how many messages a trend of the producers' side lacks for being on their way.
func (c cut) sending(op string) uint64 {
	switch op {
	case "send":
		return c.Sends
	case "request":
		return c.Requests
	}
	return 0
}

// coming is how many messages a group had not got, each of which so many of its members should get. Of those that others sent it is known only
// afterwards, when they came.
func (c cut) coming(subscribers uint64) uint64 {
	return max(c.outstanding+c.Sends*subscribers, c.Deliveries)
}

// busiest is the greatest share of its CPUs that the process used over a window that reaches into what the topic is of.
func (t *Topic) busiest() (most float64) {
	all := t.History
	if t.whole != nil {
		all = t.whole.History
	}
	for _, p := range all {
		if t.phase == nil || slices.ContainsFunc(t.phase.Stretches, func(s Stretch) bool { return p.At > s.From+edge && p.At-p.Seconds < s.To-edge }) {
			most = max(most, p.Busiest)
		}
	}
	return most
}

// edge is how far the two ends of one interval may be apart in what is written of it, in seconds.
const edge = 1e-6

// union is the time that a phase had, in stretches that share nothing: those of several processes overlap.
func (p *Phase) union() (all []Stretch) {
	for _, s := range slices.SortedFunc(slices.Values(p.Stretches), func(a, b Stretch) int { return cmp.Compare(a.From, b.From) }) {
		if last := len(all) - 1; last >= 0 && s.From <= all[last].To {
			all[last].To = max(all[last].To, s.To)
		} else {
			all = append(all, s)
		}
	}
	return all
}

// within gives the intervals that are wholly in a phase.
func within[T timed](all []T, p *Phase) (inside []T) {
	for _, one := range all {
		if slices.ContainsFunc(p.Stretches, func(s Stretch) bool { return one.end()-one.length() >= s.From-edge && one.end() <= s.To+edge }) {
			inside = append(inside, one)
		}
	}
	return inside
}

// describe spells out the percentiles of each window, and of its groups.
func (t *Topic) describe(p *Phase) {
	w, ok := t.Phases[p.Name]
	if !ok {
		return
	}
	during := t.during(p)
	during.Describe()
	w.Percentiles = during.Percentiles
	for i := range w.Groups {
		g := &w.Groups[i]
		if k := slices.IndexFunc(during.Groups, func(of Group) bool { return of.Group == g.Group }); k >= 0 {
			g.Percentiles = during.Groups[k].Percentiles
		}
	}
	t.Phases[p.Name] = w
}

// joinPhases adds the phases that another process had; where it cut is its own, but they begin and end with the whole.
func (r *Result) joinPhases(of *Result, shift float64) {
	for _, p := range of.Phases {
		to := r.Phase(p.Name)
		if to == nil {
			r.Phases = append(r.Phases, Phase{Name: p.Name})
			to = &r.Phases[len(r.Phases)-1]
		}
		length := 0.0
		for _, s := range p.Stretches {
			s, begins, ends := Stretch{s.From + shift, s.To + shift}, s.From < edge, s.To > of.Seconds-edge
			if begins {
				s.From = 0
			}
			if ends {
				s.To = r.Seconds
			}
			to.Stretches, length = append(to.Stretches, s), length+s.To-s.From
		}
		to.Seconds = max(to.Seconds, length)
		to.Hiccups = hist.Merged(to.Hiccups, p.Hiccups)
		to.Processes++
	}
	r.Lead()
}

// Lead lets the measured window lead, where there is one.
func (r *Result) Lead() {
	if r.Phase(Measure) != nil {
		r.Leading = Measure
	}
}

// joinWindows adds what another process measured in its phases, under the names that its trends have in the whole.
func (t *Topic) joinWindows(r *Result, of *Topic, named func(string) string) {
	for phase, from := range of.Phases {
		to := t.Phases[phase]
		if to.Trends == nil {
			to = Window{Counts: map[string]int64{}, Errors: []ErrorCount{}, Trends: map[string]*hist.Histogram{}, Groups: []WindowGroup{}}
		}
		for name, n := range from.Counts {
			to.Counts[name] += n
		}
		for _, e := range from.Errors {
			to.Errors = addErrors(to.Errors, e)
		}
		to.Underway = to.Underway.Plus(from.Underway)
		to.Pauses = Combined(to.Pauses, from.Pauses, func(a, b float64) float64 { return min(a, b) })
		addTrends(to.Trends, from.Trends, named)
		for _, g := range from.Groups {
			addTrends(to.group(g.Group).Trends, g.Trends, named)
		}
		if t.Phases == nil {
			t.Phases = map[string]Window{}
		}
		if p := r.Phase(phase); p != nil {
			to.addHiccups(&from, p.Hiccups, named)
		}
		t.Phases[phase] = to
	}
}

// addTrends adds distributions to others.
func addTrends(to, from map[string]*hist.Histogram, named func(string) string) {
	for name, h := range from {
		name = named(name)
		to[name] = hist.Merged(to[name], h)
	}
}

// group finds or makes a group of the window.
func (w *Window) group(name string) *WindowGroup {
	i := slices.IndexFunc(w.Groups, func(g WindowGroup) bool { return g.Group == name })
	if i < 0 {
		i = len(w.Groups)
		w.Groups = append(w.Groups, WindowGroup{Group: name, Trends: map[string]*hist.Histogram{}})
	}
	return &w.Groups[i]
}

// plainNames gives the trends of the windows their plain names.
func (t *Topic) plainNames() {
	for phase, w := range t.Phases {
		w.Trends, w.Hiccups = plain(w.Trends), plain(w.Hiccups)
		for i := range w.Groups {
			g := &w.Groups[i]
			g.Trends, g.Hiccups = plain(g.Trends), plain(g.Hiccups)
		}
		t.Phases[phase] = w
	}
}

// PhaseNames lists the phases by their names, in the order in which they began.
func (r *Result) PhaseNames() []string {
	names := make([]string, len(r.Phases))
	for i, p := range r.Phases {
		names[i] = p.Name
	}
	return names
}
