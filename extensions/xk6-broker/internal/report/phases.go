package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// few topics are shown one by one. More have a total and a line each.
const few = 3

const totalID = "total"

// measurements are the cells of a topic in the tables of phases and of topics.
func measurements(t *result.Topic) (heads []string, cells []Cell) {
	add := func(head string, c Cell) { heads, cells = append(heads, head), append(cells, c) }
	for _, c := range []recording.Counter{recording.Sent, recording.Confirmed, recording.Received} {
		add(c.String(), count(t.Counts[c.String()], false))
	}
	var failed int64
	for _, e := range t.Errors {
		failed += e.Count
	}
	add("errors", count(failed, true))
	add("confirmed/s", rate(t, recording.Confirmed))
	add("received/s", rate(t, recording.Received))
	for _, trend := range []recording.Trend{recording.PublishLatency, recording.RequestLatency, recording.E2ELatency} {
		name := trend.String()
		short := strings.TrimSuffix(name, "_latency")
		d := distribution{values: t.Trends[name], spelt: t.Percentiles[name]}
		for _, q := range []float64{0.5, 0.99} {
			add(short+" "+verdict.QuantileName(q), d.percentile(q))
		}
	}
	return heads, cells
}

// section is a topic, or all topics as one.
type section struct {
	ID      string
	Run     result.Topic
	Leading result.Topic // in the leading phase; without one, in the run
	When    string       // the leading phase was; "" without one
	Phases  Table        // a row for each phase, and the whole run
}

func newSection(r *result.Result, id string, topic func(*result.Result) result.Topic) section {
	s := section{ID: id, Run: topic(r), Leading: topic(r.Led()), Phases: Table{Class: "phases"}}
	add := func(name, time string, t result.Topic) {
		line := Row{Name: name, Label: name, Doc: time}
		s.Phases.Heads, line.Cells = measurements(&t)
		s.Phases.Rows = append(s.Phases.Rows, line)
	}
	for _, p := range r.Phases {
		add(p.Name, when(&p), topic(r.During(p.Name)))
		if p.Name == r.Leading {
			s.When = p.Name + ": " + when(&p)
		}
		if p.Afterwards { // it leads, and its name is its time
			s.When = "from " + p.Name
		}
	}
	if len(r.Phases) > 0 {
		add("the whole run", inSeconds(r.Seconds), s.Run)
	}
	s.Phases = s.Phases.compact()
	return s
}

// sections returns a section for each topic, and before more than a few the section of all.
func sections(r *result.Result) (all []section) {
	if len(r.Topics) > few {
		total := newSection(r, totalID, verdict.Total)
		total.Run.Topic = fmt.Sprintf("all %d topics together", len(r.Topics))
		all = append(all, total)
	}
	for i := range r.Topics {
		all = append(all, newSection(r, topicID(i), func(r *result.Result) result.Topic { return r.Topics[i] }))
	}
	return all
}

// when returns the time of a phase.
func when(p *result.Phase) string {
	if len(p.Stretches) == 0 {
		return ""
	}
	from, to := p.Stretches[0].From, p.Stretches[0].To
	for _, s := range p.Stretches[1:] {
		from, to = min(from, s.From), max(to, s.To)
	}
	text := inSeconds(from) + " to " + inSeconds(to)
	if n := len(p.Stretches); n > 1 && p.Processes < n {
		text += fmt.Sprintf(", in %d parts", n/max(1, p.Processes))
	}
	return text
}

func inSeconds(s float64) string { return fmt.Sprintf("%.3g s", s) }

// topicsOf is the table of many topics, with a line for each.
func topicsOf(r *result.Result) Table {
	table := Table{Class: "topics"}
	for i := range r.Topics {
		t := &r.Topics[i]
		line := Row{Name: t.Topic, Label: t.Topic, Link: topicID(i)}
		if slices.ContainsFunc(r.Topics, func(o result.Topic) bool { return o.Broker != t.Broker }) {
			line.Label += " on " + t.Broker
		}
		table.Heads, line.Cells = measurements(t)
		table.Heads, line.Cells = append(table.Heads, "lost"), append(line.Cells, lostOf(t))
		table.Rows = append(table.Rows, line)
	}
	return table.compact()
}

func topicID(i int) string { return fmt.Sprintf("topic%d", i+1) }

// lostOf is the cell of the messages that a topic lost.
func lostOf(t *result.Topic) Cell {
	var lost, expected uint64
	for _, g := range t.Groups {
		lost, expected = lost+g.Lost, expected+g.Expected
	}
	if expected == 0 {
		return Unknown(unobserved)
	}
	return count(lost, true)
}
