// Package studies runs published benchmarks again. A study is data: tests, each a script with cells of settings, and what
// was published of each cell. Its tables have what was measured beside what was published.
package studies

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
)

// Study is what a study's file exports.
type Study struct {
	Title    string                         `json:"title"`
	Question string                         `json:"question"`
	Source   struct{ Citation, URL string } `json:"source"`
	Original string                         `json:"original"` // the machines and versions of the published numbers
	Brokers  []string                       `json:"brokers"`  // by their names in scripts/broker
	Changed  []string                       `json:"changed"`  // what differs from the original
	Claims   []string                       `json:"claims"`   // published conclusions
	Repeat   int                            `json:"repeat"`
	Tests    []Test                         `json:"tests"`

	Folder string `json:"-"` // of its file, which scripts' paths are relative to
}

// Test is a table of cells that are compared with one another.
type Test struct {
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	Note     string   `json:"note"`
	Script   string   `json:"script"`
	Settings Settings `json:"settings"` // of all cells
	Columns  []Column `json:"columns"`
	Cells    []Cell   `json:"cells"`
	Base     string   `json:"base"` // the cell that the others are divided by
}

// Column is a number of each cell.
type Column struct {
	Title    string `json:"title"`
	Measured string `json:"measured"`
	Phase    string `json:"phase"` // of the run; "" for the one that leads
	Ratio    *bool  `json:"ratio"` // false: not shown as a multiple of the base

	measure measure.Measure
}

// Cell is a row: settings of the script, and what was published of them.
type Cell struct {
	Name      string         `json:"name"`
	Settings  Settings       `json:"settings"`
	Before    Settings       `json:"before"` // of a run before it, which is not measured
	Processes Processes      `json:"processes"`
	Published map[string]any `json:"published"` // by the titles of columns: a number (ms of a latency) or words
}

// Processes are the processes that run a cell together: a number, or the settings of each.
type Processes []Process

// Process is one of the processes of a cell.
type Process struct {
	Settings Settings `json:"settings"`
	Kill     string   `json:"kill"` // it is killed so long after its start
}

// UnmarshalJSON reads a number of equal processes, or a list.
func (p *Processes) UnmarshalJSON(text []byte) error {
	var n int
	if json.Unmarshal(text, &n) == nil { // also null
		if *p = nil; n > 1 {
			*p = make(Processes, n)
		}
		return nil
	}
	type list Processes
	return strict(text, (*list)(p))
}

// Settings are variables of a script's environment: text, number, truth, [Measured], or nil if they have no value.
type Settings map[string]any

// Measured is a setting that another test measured: in a cell, or the greatest of all.
type Measured struct {
	Test   string  `json:"test"`
	Cell   string  `json:"cell"`
	Column string  `json:"column"`
	Times  float64 `json:"times"` // 1 if not given
}

func strict(text []byte, to any) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// undefined replaces a setting without a value, which JSON would leave out.
const undefined = `(k, v) => v === undefined ? null : v`

// Load evaluates a study's file, an ES module. It has __ENV and SCALE, and may import other files by relative paths.
func Load(path string, env map[string]string, scale float64) (*Study, error) {
	modules := modules{known: map[string]sobek.ModuleRecord{}, paths: map[any]string{}}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	record, err := modules.load(absolute)
	if err != nil {
		return nil, err
	}
	if err := record.Link(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	vm := sobek.New()
	if err := errors.Join(vm.Set("__ENV", env), vm.Set("SCALE", scale)); err != nil {
		return nil, err
	}
	if p := vm.CyclicModuleRecordEvaluate(record, modules.resolve); p.State() != sobek.PromiseStateFulfilled {
		return nil, fmt.Errorf("%s: %s", path, p.Result())
	}
	exported := vm.NamespaceObjectFor(record).Get("study")
	if exported == nil || sobek.IsUndefined(exported) {
		return nil, fmt.Errorf("%s: it exports no study: write `export const study = { title: ..., tests: [...] }`", path)
	}
	if err := vm.Set("study", exported); err != nil {
		return nil, err
	}
	text, err := vm.RunString("JSON.stringify(study, " + undefined + ")")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &Study{Repeat: 1, Folder: filepath.Dir(absolute)}
	if err := strict([]byte(text.String()), s); err != nil {
		return nil, fmt.Errorf("%s: study: %w", path, err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

var (
	environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	folderName      = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
)

// check completes the study: each cell has the settings of its test. The error names the field.
func (s *Study) check() error {
	if s.Title == "" || s.Question == "" || s.Source.URL == "" || len(s.Tests) == 0 || s.Repeat < 1 {
		return errors.New("study: it needs a title, a question, a source with a url, at least one test, and a repeat of 1 or more")
	}
	for i := range s.Tests {
		if err := checkTest(&s.Tests[i], s.Tests[:i]); err != nil {
			return fmt.Errorf("study.tests[%d]: %w", i, err)
		}
	}
	return nil
}

func checkTest(t *Test, before []Test) error {
	switch {
	case !folderName.MatchString(t.Name):
		return fmt.Errorf("name: %q is not a name of small letters, digits and -", t.Name)
	case slices.ContainsFunc(before, func(o Test) bool { return o.Name == t.Name }):
		return fmt.Errorf("name: there is a test %q already", t.Name)
	case t.Title == "" || t.Script == "" || len(t.Columns) == 0 || len(t.Cells) == 0:
		return errors.New("it needs a title, a script, columns and cells")
	case t.Base != "" && !slices.ContainsFunc(t.Cells, func(c Cell) bool { return c.Name == t.Base }):
		return fmt.Errorf("base: there is no cell %q", t.Base)
	}
	for i := range t.Columns {
		m, err := measure.Parse(t.Columns[i].Measured)
		if err != nil {
			return fmt.Errorf("columns[%d].measured: %w", i, err)
		}
		t.Columns[i].measure = m
	}
	for i := range t.Cells {
		if name := t.Cells[i].Name; name == "" || slices.ContainsFunc(t.Cells[:i], func(o Cell) bool { return o.Name == name }) {
			return fmt.Errorf("cells[%d].name: there is a cell %q already, or it is empty", i, name)
		}
		if err := checkCell(t, &t.Cells[i], before); err != nil {
			return fmt.Errorf("cells[%d]: %w", i, err)
		}
	}
	return nil
}

func checkCell(t *Test, c *Cell, before []Test) error {
	c.Settings = with(t.Settings, c.Settings)
	all := []Settings{c.Settings}
	if c.Before != nil {
		c.Before = with(c.Settings, c.Before)
		all = append(all, c.Before)
	}
	if len(c.Processes) > 0 && c.Before == nil {
		return errors.New("before: processes that run together need a run before them that makes the topic")
	}
	for i := range c.Processes {
		p := &c.Processes[i]
		p.Settings = with(c.Settings, p.Settings)
		all = append(all, p.Settings)
		if _, err := p.kill(); err != nil {
			return fmt.Errorf("processes[%d].kill: %w", i, err)
		}
	}
	for title := range c.Published {
		if !slices.ContainsFunc(t.Columns, func(o Column) bool { return o.Title == title }) {
			return fmt.Errorf("published: there is no column %q", title)
		}
	}
	for _, settings := range all {
		for name, value := range settings {
			if !environmentName.MatchString(name) || sweep.Reserved(name) {
				return fmt.Errorf("settings: %q is not a name for a setting of a cell", name)
			}
			m, ok := value.(map[string]any)
			if !ok {
				continue
			}
			measured, err := measuredOf(m)
			if err != nil {
				return fmt.Errorf("settings.%s: %w", name, err)
			}
			if !slices.ContainsFunc(before, func(o Test) bool { return o.has(measured) }) {
				return fmt.Errorf("settings.%s: no test before this one has the cell %q with the column %q", name, measured.Cell, measured.Column)
			}
			settings[name] = measured
		}
	}
	return nil
}

func (t *Test) has(m Measured) bool {
	return t.Name == m.Test && slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Title == m.Column }) &&
		(m.Cell == "" || slices.ContainsFunc(t.Cells, func(c Cell) bool { return c.Name == m.Cell }))
}

func measuredOf(m map[string]any) (Measured, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return Measured{}, err
	}
	measured := Measured{Times: 1}
	return measured, strict(text, &measured)
}

// with returns settings with others in their place.
func with(all, others Settings) Settings {
	joined := Settings{}
	for _, settings := range []Settings{all, others} {
		for name, value := range settings {
			joined[name] = value
		}
	}
	return joined
}

// text returns a setting's value as a text; "" if it has none.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func (p Process) kill() (time.Duration, error) {
	if p.Kill == "" {
		return 0, nil
	}
	return time.ParseDuration(p.Kill)
}

// scale is the factor from a number in a study's file to the measure's unit: latencies are milliseconds, as in k6.
func (c *Column) scale() float64 {
	if c.measure.Unit == "ns" {
		return 1e6
	}
	return 1
}

// modules loads the files that a study imports.
type modules struct {
	known map[string]sobek.ModuleRecord
	paths map[any]string
}

func (m *modules) resolve(from any, specifier string) (sobek.ModuleRecord, error) {
	if !strings.HasPrefix(specifier, "./") && !strings.HasPrefix(specifier, "../") {
		return nil, fmt.Errorf("import of %q: a study imports files by relative paths only, such as ./common.js", specifier)
	}
	return m.load(filepath.Join(filepath.Dir(m.paths[from]), filepath.FromSlash(specifier)))
}

func (m *modules) load(path string) (sobek.CyclicModuleRecord, error) {
	if known, ok := m.known[path].(sobek.CyclicModuleRecord); ok {
		return known, nil
	}
	text, err := os.ReadFile(path) //gosec:disable G304 -- a file of the user's
	if err != nil {
		return nil, fmt.Errorf("no study: %w", err)
	}
	record, err := sobek.ParseModule(path, string(text), m.resolve)
	if err != nil {
		return nil, fmt.Errorf("no study: %w", err)
	}
	m.known[path], m.paths[record] = record, path
	return record, nil
}
