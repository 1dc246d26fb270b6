package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Value returns an option's value as text, the same before and after it went through JSON.
func Value(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	text, err := json.Marshal(v)
	if err != nil || slices.Contains([]string{"null", "[]", "{}"}, string(text)) {
		return ""
	}
	return string(text)
}

// facts lists options by name, without the empty ones. If names are given, it lists only these.
func facts(options map[string]any, names []string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		value := Value(options[name])
		if value != "" && (names == nil || slices.Contains(names, name)) {
			all = append(all, name+" "+value)
		}
	}
	return strings.Join(all, ", ")
}

// scenariosOf is the table of the test's scenarios.
func scenariosOf(t *result.Test) Table {
	table := Table{Class: "scenarios"}
	for _, s := range t.Scenarios {
		vus := fmt.Sprintf("%d VUs", s.VUs)
		if s.MaxVUs > s.VUs {
			vus = fmt.Sprintf("%d to %d VUs", s.VUs, s.MaxVUs)
		}
		cells := []Cell{Words(s.Executor), Words("function " + s.Exec), Words(vus)}
		if load := facts(s.Options, nil); load != "" {
			cells = append(cells, Words(load))
		}
		table.Rows = append(table.Rows, Row{Name: s.Name, Label: s.Name, Cells: cells})
	}
	return table
}

// usersOf is the table of a topic's users with their options; with names, with only these options.
func usersOf(t *result.Topic, names []string) Table {
	table := Table{Class: "setup"}
	add := func(label, text string) {
		if text != "" {
			table.Rows = append(table.Rows, Row{Label: label, Cells: []Cell{Words(text)}})
		}
	}
	add("messages", meanSize(t))
	for _, sort := range slices.Sorted(maps.Keys(t.Options)) {
		for _, options := range t.Options[sort] {
			add(sort, facts(options, names))
		}
	}
	for _, g := range t.Groups {
		if g.Members > 0 {
			add(groupName(g), fmt.Sprintf("consumers %d", g.Members))
		}
	}
	return table
}

// meanSize returns the mean size of a body. It is not known if requests were sent, because replies
// are counted in their bytes.
func meanSize(t *result.Topic) string {
	sent, bytes := t.Counts[recording.Sent.String()], t.Counts[recording.BytesSent.String()]
	open, closed := t.Trends[recording.RequestLatency.String()], t.Trends[recording.RequestLatency.In(recording.Closed)]
	requests := open != nil || closed != nil || t.Counts[recording.Unanswered.String()] > 0
	if sent == 0 || bytes == 0 || requests {
		return ""
	}
	mean := math.Round(10*float64(bytes)/float64(sent)) / 10
	return "mean size " + strconv.FormatFloat(mean, 'f', -1, 64) + " bytes"
}

// briefOptions are the options of a topic's users that the terminal shows.
var briefOptions = []string{
	"partitions", "replicas", "maxInFlight", "group", "prefetch", "replyTopic", "rate", "arrivals", "work",
}

// thresholdsOf is the table of the test's thresholds.
func thresholdsOf(all []result.Threshold) Table {
	table := Table{Class: "thresholds", Caption: "Thresholds"}
	for _, t := range all {
		c := Cell{Text: "✗ did not hold", Class: "text bad"}
		if !t.Judged {
			c = Cell{Text: "? could not be judged", Class: "text doubted"}
		} else if t.Held {
			c = Cell{Text: "✓ held", Class: "text good"}
		}
		if t.Value != nil && t.Judged {
			c.Text += fmt.Sprintf(": %.4g", *t.Value)
		}
		if t.Why != "" {
			c.Text += ": " + t.Why
		}
		table.Rows = append(table.Rows, Row{Label: t.Metric + " " + t.Source, Cells: []Cell{c}})
	}
	return table
}
