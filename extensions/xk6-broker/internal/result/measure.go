package result

import (
	"fmt"
	"io"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// Measure sets the measurements from a recording alone: the phases, and of the topics and groups that the result has
// their counts, errors, latencies, spans and histories. Counters that a topic has stay, at 0 if nothing was counted.
func (r *Result) Measure(rec *recording.Recording) {
	view := rec.View(r.Started)
	r.Recording, r.Phases, r.Leading = rec, view.Phases(), ""
	if r.Phase(Measure) != nil {
		r.Leading = Measure
	}
	if r.Platform != nil {
		r.Platform.Hiccups = view.Hiccups()
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		m := view.Measure(t.subject())
		for name := range t.Counts {
			m.Counts[name] += 0
		}
		t.OpenLoop, t.Counts, t.Errors, t.Trends = m.Open, m.Counts, m.Errors, m.Trends
		t.Spans, t.History, t.OverTime, t.Phases = m.Spans, m.History, m.OverTime, m.Phases
		for k := range t.Groups {
			t.Groups[k].Trends = m.Groups[k].Trends
		}
	}
}

// subject returns the topic as a recording knows it.
func (t *Topic) subject() recording.Subject {
	s := recording.Subject{Broker: t.Broker, Driver: t.Driver, Topic: t.Topic, Open: t.OpenLoop}
	for i := range t.Groups {
		s.Groups = append(s.Groups, t.Groups[i].Group)
	}
	return s
}

// Cut adds the phase from one time to another, in seconds from the start, and lets it lead, without percentiles. It is
// cut at the nearest instants at which an interval of the recording begins or ends.
func (r *Result) Cut(rec *recording.Recording, from, to float64) error {
	p, window, err := rec.Cut(r.Started, from, to)
	if err != nil {
		return err
	}
	if r.Phase(p.Name) != nil {
		return fmt.Errorf("the run has a phase %q", p.Name)
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		if t.Phases == nil {
			t.Phases = map[string]Window{}
		}
		t.Phases[p.Name] = window(t.subject())
	}
	r.Phases, r.Leading = append(r.Phases, p), p.Name
	return nil
}

// WriteLog writes the distributions of a topic's trend in each interval in the format .hlog.
func (r *Result) WriteLog(w io.Writer, t *Topic, trend recording.Trend) error {
	return r.Recording.View(r.Started).WriteLog(w, t.subject(), trend)
}
