package result

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// The names of phases with a meaning.
const (
	Starting = "start"    // the time before the first named phase
	WarmUp   = "warmup"   // in no measured window
	Measure  = "measured" // the measured window, which leads
)

// Phase is a part of the run's time: one stretch or, if it came again, several. A latency belongs to the phase in which
// its message was due, a count to the phase in which it happened.
type Phase struct {
	Name      string          `json:"name"`
	Stretches []Stretch       `json:"stretches"`
	Processes int             `json:"processes,omitempty"` // whose stretches these are, of several
	Seconds   float64         `json:"seconds"`             // of all its stretches; of several processes the most that one has
	Hiccups   *hist.Histogram `json:"hiccups,omitempty"`   // of the machine

	Afterwards bool `json:"-"` // it was cut out of a finished run
}

// Stretch is the time between two instants, in seconds from the start.
type Stretch struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Window is what was measured of a topic in a phase. Those of all phases add up to the run.
type Window struct {
	Counts      map[string]int64           `json:"counts"`
	Errors      []ErrorCount               `json:"errors"`
	Trends      map[string]*hist.Histogram `json:"trends"`
	Percentiles map[string][]Percentile    `json:"percentiles"`
	Groups      []WindowGroup              `json:"groups"`
}

// WindowGroup is what was measured of a group in a phase. Its account is of the whole run only.
type WindowGroup struct {
	Group       string                     `json:"group"`
	Received    uint64                     `json:"received"` // copies included
	Settled     uint64                     `json:"settled"`  // acknowledged, requeued or rejected
	Trends      map[string]*hist.Histogram `json:"trends"`
	Percentiles map[string][]Percentile    `json:"percentiles"`
}

// group returns a group of the window; an empty one if it has none of that name.
func (w Window) group(name string) WindowGroup {
	for _, g := range w.Groups {
		if g.Group == name {
			return g
		}
	}
	return WindowGroup{Group: name}
}

// Phase returns a phase; nil if the run has none of that name.
func (r *Result) Phase(name string) *Phase {
	i := slices.IndexFunc(r.Phases, func(p Phase) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Phases[i]
}

// PhaseNames lists the phases in the order in which they began.
func (r *Result) PhaseNames() []string {
	names := make([]string, len(r.Phases))
	for i, p := range r.Phases {
		names[i] = p.Name
	}
	return names
}

// Led returns the run as it was in the leading phase, or as a whole.
func (r *Result) Led() *Result {
	if r.Leading == "" {
		return r
	}
	return r.During(r.Leading)
}

// During returns the run as it was in a phase; nil if there is none of that name. The account stays that of the run.
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

func (t *Topic) during(p *Phase) Topic {
	w, during := t.Phases[p.Name], *t
	during.phase, during.runCounts, during.Phases, during.Seen = p, t.Counts, nil, p.Hiccups
	during.Counts, during.Errors, during.Trends, during.Percentiles = w.Counts, w.Errors, w.Trends, w.Percentiles
	during.History, during.OverTime = within(t.History, p), map[string][]Summary{}
	for name, all := range t.OverTime {
		during.OverTime[name] = within(all, p)
	}
	during.Groups = slices.Clone(t.Groups)
	for i := range during.Groups {
		g := &during.Groups[i]
		own := w.group(g.Group)
		g.Received, g.Settled, g.Trends, g.Percentiles = own.Received, own.Settled, own.Trends, own.Percentiles
	}
	return during
}

// within returns the intervals that are wholly in a phase.
func within[T timed](all []T, p *Phase) (inside []T) {
	const edge = 1e-6 // by which two texts of one instant may differ
	for _, one := range all {
		if slices.ContainsFunc(p.Stretches, func(s Stretch) bool { return one.end()-one.length() >= s.From-edge && one.end() <= s.To+edge }) {
			inside = append(inside, one)
		}
	}
	return inside
}

// describePhase spells out the percentiles of a phase.
func (t *Topic) describePhase(p *Phase) {
	w, ok := t.Phases[p.Name]
	if !ok {
		return
	}
	during := t.during(p)
	during.Describe()
	w.Percentiles = during.Percentiles
	for i := range during.Groups {
		for k := range w.Groups {
			if w.Groups[k].Group == during.Groups[i].Group {
				w.Groups[k].Percentiles = during.Groups[i].Percentiles
			}
		}
	}
	t.Phases[p.Name] = w
}
