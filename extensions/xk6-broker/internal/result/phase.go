package result

import (
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// The names of phases with a meaning.
const (
	Starting = recording.Starting
	WarmUp   = recording.WarmUp
	Measure  = recording.Measured
)

// The parts of the model that a recording measures.
type (
	Phase       = recording.Phase
	Stretch     = recording.Stretch
	Window      = recording.Window
	WindowGroup = recording.WindowGroup
	Percentile  = recording.Percentile
	Point       = recording.Point
	Summary     = recording.Summary
	Span        = recording.Extent
	ErrorCount  = recording.ErrorCount
)

// Phase returns a phase; nil if the run has none of that name.
func (r *Result) Phase(name string) *Phase {
	i := slices.Index(r.PhaseNames(), name)
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
		during.Topics[i] = r.Topics[i].In(p)
	}
	return &during
}

// In returns the topic as it was in a phase.
func (t *Topic) In(p *Phase) Topic {
	w, during := t.Phases[p.Name], *t
	during.During, during.Whole, during.Phases, during.Hiccups = p, t, nil, p.Hiccups
	during.Counts, during.Errors, during.Trends, during.Percentiles = w.Counts, w.Errors, w.Trends, w.Percentiles
	during.History, during.OverTime = recording.Within(t.History, p), map[string][]Summary{}
	for name, all := range t.OverTime {
		during.OverTime[name] = recording.Within(all, p)
	}
	during.Groups = slices.Clone(t.Groups)
	for i := range during.Groups {
		g := &during.Groups[i]
		own := WindowGroup{}
		if k := slices.IndexFunc(w.Groups, func(w WindowGroup) bool { return w.Group == g.Group }); k >= 0 {
			own = w.Groups[k]
		}
		g.Received, g.Settled, g.Trends, g.Percentiles = own.Received, own.Settled, own.Trends, own.Percentiles
	}
	return during
}

// RateBasis returns a count and its duration in seconds; 0 if that is too short for a rate.
func (t *Topic) RateBasis(counter string) (n, seconds float64) {
	return float64(t.Counts[counter]), recording.RateTime(counter, t.Spans, t.During)
}

// Loop splits the name of a trend: the name of its metric, and its loop, "open" or "closed"; "" if it has none.
func (t *Topic) Loop(name string) (trend, loop string) {
	trend, closed := strings.CutSuffix(name, recording.ClosedSuffix)
	of, ok := recording.TrendNamed(trend)
	switch {
	case !ok || !of.Looped():
		return trend, ""
	case closed || !t.OpenLoop:
		return trend, recording.Closed.String()
	}
	return trend, recording.Open.String()
}
