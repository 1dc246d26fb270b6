// Package studies runs sweeps and published benchmarks. A study is data: tests with a script and
// cells of settings, and the published numbers. Its tables have the measured numbers beside the
// published numbers.
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

	varied []string // the settings of a sweep
	axis   string   // the one with the most values: charts are over it
}

// Test is a table of cells that are compared with one another.
type Test struct {
	Name     string
	Title    string
	Note     string
	Script   string
	Settings cells.Settings
	Columns  []*cells.Column
	Cells    []*Cell
	Base     string
	Rate     *Pace // of each cell, instead of a setting
}

// Pace is a rate: a share of the most that a valid run of another test had in its first column.
type Pace struct {
	Test  string
	Share float64
}

// Cell is a row: settings of the script, and the published numbers.
type Cell struct {
	Name      string
	Settings  cells.Settings
	Published map[string]any // by the titles of columns: a number or words

	row string // the name among the cells of all tests
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
		EntryPoints: []string{path}, Bundle: true, Format: api.FormatIIFE, GlobalName: "file",
		LogLevel: api.LogLevelSilent,
	})
	if len(built.Errors) > 0 {
		return nil, fmt.Errorf("%s: %s", path, built.Errors[0].Text)
	}
	vm := sobek.New()
	if err := errors.Join(vm.Set("__ENV", env), vm.Set("SCALE", scale)); err != nil {
		return nil, err
	}
	// An undefined setting becomes null: JSON leaves out undefined values.
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

// complete parses the columns, gives each cell the settings of its test, and checks the study.
func (s *Study) complete() error {
	if s.Title == "" || len(s.Tests) == 0 {
		return errors.New("a study needs a title and tests")
	}
	if s.Repeat < 1 {
		return fmt.Errorf("--repeat %d: it must be 1 or more", s.Repeat)
	}
	for _, t := range s.Tests {
		if err := t.complete(); err != nil {
			return fmt.Errorf("test %q: %w", t.Name, err)
		}
		for _, c := range t.Cells {
			if c.row = c.Name; len(s.Tests) > 1 {
				c.row = t.Name + ", " + c.Name
			}
		}
		if t.Rate != nil && s.test(t.Rate.Test) == nil {
			return fmt.Errorf("test %q: rate: there is no test %q", t.Name, t.Rate.Test)
		}
	}
	return nil
}

func (s *Study) test(name string) *Test {
	for _, t := range s.Tests {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func (t *Test) complete() (err error) {
	for _, c := range t.Columns {
		if c.Measure, err = measure.Parse(c.Measured); err != nil {
			return err
		}
	}
	if t.Base != "" && t.cell(t.Base) == nil {
		return fmt.Errorf("base: there is no cell %q", t.Base)
	}
	for _, c := range t.Cells {
		if t.cell(c.Name) != c {
			return fmt.Errorf("there are two cells %q", c.Name)
		}
		for title := range c.Published {
			if !slices.ContainsFunc(t.Columns, func(c *cells.Column) bool { return c.Title == title }) {
				return fmt.Errorf("cell %q: published: there is no column %q", c.Name, title)
			}
		}
		settings := cells.Settings{}
		maps.Copy(settings, t.Settings)
		maps.Copy(settings, c.Settings)
		c.Settings = settings
	}
	return nil
}

func (t *Test) cell(name string) *Cell {
	for _, c := range t.Cells {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// missing returns a setting without a value; "" if the cell can be run.
func (c *Cell) missing() string {
	for _, name := range c.Settings.Names() {
		if c.Settings[name] == "" {
			return name
		}
	}
	return ""
}

// published returns the published number of a column, and its text. Latencies are milliseconds.
func (c *Cell) published(column *cells.Column) (number float64, text string) {
	switch v := c.Published[column.Title].(type) {
	case string:
		return 0, v
	case float64:
		if column.Unit == "ns" {
			v *= 1e6
		}
		return v, column.Measure.Show(v)
	}
	return 0, "–"
}
