package result

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// The names of phases that mean something.
const (
	Starting = "start"    // what was before the first phase that had a name
	WarmUp   = "warmup"   // what is in no measured window
	Measure  = "measured" // the measured window: what a verdict, where there is one, and the tables are about first
)

// Phase is a part of the run's time: one stretch or, if it came again, several. The phases of a run cover all of it, and share
// nothing: a latency belongs to the phase in which its message was due, a count to the phase in which it happened.
type Phase struct {
	Name      string          `json:"name"`
	Stretches []Stretch       `json:"stretches"`
	Processes int             `json:"processes,omitempty"` // whose stretches these are, of several
	Seconds   float64         `json:"seconds"`             // of all its stretches; of several processes the most that one has
	Hiccups   *hist.Histogram `json:"hiccups,omitempty"`   // of the platform

	Afterwards bool `json:"-"` // it was cut out of the run when that was over, beside its phases
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
	Groups      []WindowGroup              `json:"groups"`
}

// WindowGroup is what was counted and measured of a group in a phase. What was lost, duplicated, redelivered and reordered is
// known of the whole run only.
type WindowGroup struct {
	Group       string                     `json:"group"`
	Received    uint64                     `json:"received"` // copies included
	Settled     uint64                     `json:"settled"`  // acknowledged, requeued or rejected
	Trends      map[string]*hist.Histogram `json:"trends"`
	Percentiles map[string][]Percentile    `json:"percentiles"`
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

// During is the run as it was in a phase; nil where there is none of that name. The account stays that of the whole run, but for
// what was received and settled.
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
	during.whole, during.phase, during.Phases, during.Seen = t, p, nil, p.Hiccups
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
		g.Received, g.Settled, g.Trends, g.Percentiles = of.Received, of.Settled, of.Trends, of.Percentiles
	}
	return during
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

// Lead lets the measured window lead, where there is one.
func (r *Result) Lead() {
	if r.Phase(Measure) != nil {
		r.Leading = Measure
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
