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
	Zips    []string // NAME,NAME
	Columns []string
}

// Axis is a setting with its values, or several settings with paired values.
type Axis struct {
	Names  []string
	Points []cells.Values
}

// Do runs the combinations without a result.
func (s *Sweep) Do(ctx context.Context) error {
	axes, err := parseAxes(s.Sets, s.Zips)
	if err != nil {
		return err
	}
	test := &studies.Test{Name: "sweep", Title: "Every combination", Script: s.Script}
	for _, name := range s.Columns {
		test.Columns = append(test.Columns, &studies.Column{Title: name, Measured: name})
	}
	for _, values := range combine(axes) {
		settings := studies.Settings{}
		for _, v := range values {
			settings[v.Name] = studies.Setting{Text: v.Value}
		}
		test.Cells = append(test.Cells, &studies.Cell{Name: values.String(), Settings: settings})
	}
	if s.Repeat < 1 {
		return fmt.Errorf("--repeat %d: it must be 1 or more", s.Repeat)
	}
	script := filepath.Base(s.Script)
	s.Name = strings.TrimSuffix(script, filepath.Ext(script)) + "-sweep"
	s.Data = &studies.Study{Title: "Sweep of " + script, Tests: []*studies.Test{test}}
	longest := axes[0]
	for _, a := range axes {
		s.Settings = append(s.Settings, a.Names...)
		if len(a.Points) > len(longest.Points) {
			longest = a
		}
	}
	s.Extend = func(page *cells.Page, runs []cells.Outcome) {
		for _, c := range test.Columns {
			if chart, ok := c.Chart(strings.Join(longest.Names, ", "), runs, longest.place(s.Settings)); ok {
				page.Charts = append(page.Charts, chart)
			}
		}
	}
	return s.Run.Do(ctx)
}

// place returns the tick and the line of a run on a chart over the axis.
func (a Axis) place(names []string) func(cells.Outcome) (tick, line string) {
	return func(o cells.Outcome) (string, string) {
		var ticks, lines []string
		for _, name := range names {
			if slices.Contains(a.Names, name) {
				ticks = append(ticks, o.Settings.Get(name))
			} else {
				lines = append(lines, name+"="+o.Settings.Get(name))
			}
		}
		return strings.Join(ticks, " "), strings.Join(lines, " ")
	}
}

// parseAxes parses settings, NAME=VALUE,VALUE as in CSV, and the names of paired settings, NAME,NAME.
func parseAxes(sets, zips []string) (axes []Axis, err error) {
	for _, text := range sets {
		name, list, _ := strings.Cut(text, "=")
		lines, err := csv.NewReader(strings.NewReader(list)).ReadAll()
		if name == "" || err != nil || len(lines) != 1 {
			return nil, fmt.Errorf(`--set %q: write NAME=VALUE,VALUE, and a value with a comma as "a,b"`, cells.Shown(text))
		}
		if find(axes, name) >= 0 {
			return nil, fmt.Errorf("--set %s is given twice: write all values in one", name)
		}
		a := Axis{Names: []string{name}}
		for _, value := range lines[0] {
			a.Points = append(a.Points, cells.Values{{Name: name, Value: value}})
		}
		axes = append(axes, a)
	}
	if len(axes) == 0 {
		return nil, errors.New("nothing varies: give --set NAME=VALUE,VALUE")
	}
	for _, names := range zips {
		if axes, err = zip(axes, strings.Split(names, ",")); err != nil {
			return nil, fmt.Errorf("--zip %s: %w", names, err)
		}
	}
	return axes, nil
}

// find returns the axis that begins with a setting; -1 if there is none.
func find(axes []Axis, name string) int {
	return slices.IndexFunc(axes, func(a Axis) bool { return a.Names[0] == name })
}

// zip pairs the values of settings: the axes of the others join the first.
func zip(axes []Axis, names []string) ([]Axis, error) {
	for _, name := range names[1:] {
		first, other := find(axes, names[0]), find(axes, name)
		if first < 0 || other < 0 || other == first {
			return nil, errors.New("name settings of --set, each once")
		}
		a, b := &axes[first], axes[other]
		if len(a.Points) != len(b.Points) {
			return nil, fmt.Errorf("%s has %d values and %s has %d", a.Names[0], len(a.Points), name, len(b.Points))
		}
		a.Names = append(a.Names, name)
		for i, point := range b.Points {
			a.Points[i] = append(a.Points[i], point...)
		}
		axes = slices.Delete(axes, other, other+1)
	}
	return axes, nil
}

// combine returns every combination of the points, the last axis fastest.
func combine(axes []Axis) []cells.Values {
	all := []cells.Values{nil}
	for _, a := range axes {
		var longer []cells.Values
		for _, values := range all {
			for _, point := range a.Points {
				longer = append(longer, slices.Concat(values, point))
			}
		}
		all = longer
	}
	return all
}
