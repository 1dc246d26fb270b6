// Package studies runs published benchmarks again. A study is data: tests with a script and cells of settings, and the
// published numbers. Its tables have the measured numbers beside the published numbers.
package studies

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// Study is the export of a study's file. types/index.d.ts describes the fields.
type Study struct {
	Title    string
	Question string
	Source   struct{ Citation, URL string }
	Original string
	Brokers  []string
	Changed  []string
	Claims   []string
	Repeat   int
	Tests    []*Test
}

// Test is a table of cells that are compared with one another.
type Test struct {
	Name     string
	Title    string
	Note     string
	Script   string
	Settings Settings
	Columns  []*Column
	Cells    []*Cell
	Base     string
}

// Column is a number of each cell.
type Column struct {
	Title    string
	Measured string
	Phase    string
	Ratio    *bool // nil is true

	cells.Column `json:"-"`
}

// Cell is a row: settings of the script, and the published numbers.
type Cell struct {
	Name      string
	Settings  Settings
	Published map[string]any // by the titles of columns: a number or words
}

// Settings are variables of a script's environment.
type Settings map[string]Setting

// Setting is a text, or a number that another test measured.
type Setting struct {
	Text string // "" if the cell cannot be run
	From Measured
}

// Measured refers to the number of a cell of a test, or to the greatest number of all its cells.
type Measured struct {
	Test, Cell, Column string
	Times              float64
}

// UnmarshalJSON reads a text, number, boolean, null, or an object that refers to a number.
func (s *Setting) UnmarshalJSON(text []byte) error {
	switch {
	case text[0] == '{':
		s.From.Times = 1
		return strict(text, &s.From)
	case text[0] == '"':
		return json.Unmarshal(text, &s.Text)
	}
	s.Text = strings.TrimPrefix(string(text), "null")
	return nil
}

func strict(text []byte, to any) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// Load evaluates a study's file, an ES module with __ENV and SCALE, and the files that it imports.
func Load(path string, env map[string]string, scale float64) (*Study, error) {
	if !(scale > 0 && scale <= 1) {
		return nil, fmt.Errorf("--scale %v: it must be more than 0, and 1 at most", scale)
	}
	built := api.Build(api.BuildOptions{
		EntryPoints: []string{path}, Bundle: true, Format: api.FormatIIFE, GlobalName: "file", LogLevel: api.LogLevelSilent,
	})
	if len(built.Errors) > 0 {
		return nil, fmt.Errorf("%s: %s", path, built.Errors[0].Text)
	}
	vm := sobek.New()
	if err := errors.Join(vm.Set("__ENV", env), vm.Set("SCALE", scale)); err != nil {
		return nil, err
	}
	// An undefined setting becomes null, because JSON leaves out what is undefined.
	const export = "; JSON.stringify(file.study || {}, (k, v) => v === undefined ? null : v)"
	text, err := vm.RunString(string(built.OutputFiles[0].Contents) + export)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &Study{Repeat: 1}
	if err := strict([]byte(text.String()), s); err != nil {
		return nil, fmt.Errorf("%s: study: %w", path, err)
	}
	for _, t := range s.Tests {
		t.Script = filepath.Join(filepath.Dir(path), filepath.FromSlash(t.Script))
	}
	return s, nil
}

// complete gives each cell the settings of its test, and checks the study.
func (s *Study) complete() error {
	if s.Title == "" || len(s.Tests) == 0 || s.Repeat < 1 {
		return errors.New("a study needs a title, tests, and a repeat of 1 or more")
	}
	for i, t := range s.Tests {
		if find(s.Tests, t.Name) != t || len(t.Columns) == 0 {
			return fmt.Errorf("test %q: it has no columns, or the name is taken", t.Name)
		}
		if err := t.complete(s.Tests[:i]); err != nil {
			return fmt.Errorf("test %q: %w", t.Name, err)
		}
	}
	return nil
}

func (t *Test) complete(before []*Test) error {
	for _, c := range t.Columns {
		m, err := measure.Parse(c.Measured)
		if err != nil {
			return err
		}
		c.Column = cells.Column{Measure: m, Phase: c.Phase}
	}
	if t.Base != "" && t.cell(t.Base) == nil {
		return fmt.Errorf("base: there is no cell %q", t.Base)
	}
	for _, c := range t.Cells {
		if t.cell(c.Name) != c {
			return fmt.Errorf("there are two cells %q", c.Name)
		}
		for title := range c.Published {
			if t.column(title) == nil {
				return fmt.Errorf("cell %q: published: there is no column %q", c.Name, title)
			}
		}
		settings := Settings{}
		maps.Copy(settings, t.Settings)
		maps.Copy(settings, c.Settings)
		c.Settings = settings
		for name, setting := range settings {
			if m := setting.From; m.Test != "" && !m.in(before) {
				return fmt.Errorf("cell %q: settings.%s: no test before this one measures it", c.Name, name)
			}
		}
	}
	return nil
}

// in reports whether one of the tests measures the number.
func (m Measured) in(tests []*Test) bool {
	t := find(tests, m.Test)
	return t != nil && t.column(m.Column) != nil && (m.Cell == "" || t.cell(m.Cell) != nil)
}

// lacks returns a setting without a value; "" if the cell can be run.
func (c *Cell) lacks() string {
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		if s := c.Settings[name]; s.Text == "" && s.From.Test == "" {
			return name
		}
	}
	return ""
}

func find(tests []*Test, name string) *Test {
	return first(tests, func(t *Test) bool { return t.Name == name })
}

func (t *Test) cell(name string) *Cell {
	return first(t.Cells, func(c *Cell) bool { return c.Name == name })
}

func (t *Test) column(title string) *Column {
	return first(t.Columns, func(c *Column) bool { return c.Title == title })
}

func first[T any](all []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i]
	}
	return nil
}

// published returns the published number of a cell, in the unit of the measure, and its text.
func (c *Column) published(cell *Cell) (number float64, text string) {
	switch v := cell.Published[c.Title].(type) {
	case string:
		return 0, v
	case float64:
		return v * c.scale(), c.Measure.Show(v * c.scale())
	}
	return 0, "–"
}

// scale is the factor from a number in a study's file to the unit of the measure: latencies are milliseconds.
func (c *Column) scale() float64 {
	if c.Unit == "ns" {
		return 1e6
	}
	return 1
}
