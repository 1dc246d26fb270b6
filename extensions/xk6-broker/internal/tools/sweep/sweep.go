// Package sweep runs a script with every combination of settings: a study of one test.
package sweep

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/studies"
)

// Sweep runs a script with every combination of settings.
type Sweep struct {
	studies.Run
	Script  string
	Sets    []string // NAME=VALUE,VALUE
	Columns []string
}

// Columns are the columns of a sweep if none are given.
var Columns = []string{
	"confirmed rate", "received rate", "publish_latency p50", "publish_latency p99", "e2e_latency p50",
	"e2e_latency p99", "request_latency p50", "request_latency p99", "lost", "errors",
}

// axis is a setting with its values.
type axis struct {
	name   string
	values []string
}

// Do runs the combinations without a result.
func (s *Sweep) Do(ctx context.Context) error {
	axes, err := parse(s.Sets)
	if err != nil {
		return err
	}
	if s.Repeat < 1 {
		return fmt.Errorf("--repeat %d: it must be 1 or more", s.Repeat)
	}
	test := &studies.Test{Name: "sweep", Title: "Every combination", Script: s.Script}
	for _, name := range s.Columns {
		test.Columns = append(test.Columns, &studies.Column{Title: name, Measured: name})
	}
	for _, values := range combine(axes) {
		settings := studies.Settings{}
		for _, v := range values {
			settings[v.Name] = studies.Setting(v.Value)
		}
		test.Cells = append(test.Cells, &studies.Cell{Name: values.String(), Settings: settings})
	}
	s.Name = cells.Base(s.Script) + "-sweep"
	s.Data = &studies.Study{Title: "Sweep of " + filepath.Base(s.Script), Tests: []*studies.Test{test}}
	longest := axes[0]
	for _, a := range axes {
		s.Settings = append(s.Settings, a.name)
		if len(a.values) > len(longest.values) {
			longest = a
		}
	}
	s.Extend = func(page *cells.Page, runs []cells.Outcome) {
		for _, c := range test.Columns {
			chart, ok := c.Chart(longest.name, runs, func(o cells.Outcome) (tick, line string) {
				isTick := func(v cells.Value) bool { return v.Name == longest.name }
				others := slices.DeleteFunc(slices.Clone(o.Settings), isTick)
				return o.Settings.Get(longest.name), others.String()
			})
			if ok {
				page.Charts = append(page.Charts, chart)
			}
		}
	}
	return s.Run.Do(ctx)
}

// parse parses settings, NAME=VALUE,VALUE as in CSV.
func parse(sets []string) (axes []axis, err error) {
	for _, text := range sets {
		name, list, _ := strings.Cut(text, "=")
		lines, err := csv.NewReader(strings.NewReader(list)).ReadAll()
		if name == "" || err != nil || len(lines) != 1 {
			return nil, fmt.Errorf(`--set %q: write NAME=VALUE,VALUE, a value with a comma as "a,b"`, cells.Shown(text))
		}
		if slices.ContainsFunc(axes, func(a axis) bool { return a.name == name }) {
			return nil, fmt.Errorf("--set %s is given twice: write all values in one", name)
		}
		axes = append(axes, axis{name, lines[0]})
	}
	if len(axes) == 0 {
		return nil, errors.New("nothing varies: give --set NAME=VALUE,VALUE")
	}
	return axes, nil
}

// combine returns every combination of the values, the last setting fastest.
func combine(axes []axis) []cells.Values {
	all := []cells.Values{nil}
	for _, a := range axes {
		var longer []cells.Values
		for _, values := range all {
			for _, value := range a.values {
				longer = append(longer, append(slices.Clone(values), cells.Value{Name: a.name, Value: value}))
			}
		}
		all = longer
	}
	return all
}
