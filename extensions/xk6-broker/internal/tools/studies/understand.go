package studies

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
)

// understand makes a study of the object that a file exports. The error names the field, what it is, and what is allowed.
func understand(vm *sobek.Runtime, exported sobek.Value) (s *Study, err error) {
	defer func() { // of the first field that is wrong
		switch wrong := recover().(type) {
		case nil:
		case mistake:
			s, err = nil, wrong
		default:
			panic(wrong)
		}
	}()
	f := field{vm, "study", exported}.object("title", "question", "source", "original", "brokers", "changed", "claims", "repeat", "tests")
	source := f("source").object("citation", "url")
	s = &Study{
		Title: f("title").text(), Question: f("question").text(), Original: f("original").optional(),
		Source:  Source{Citation: source("citation").text(), URL: source("url").text()},
		Brokers: f("brokers").texts(), Changed: f("changed").texts(), Claims: f("claims").texts(),
		Repeat: f("repeat").whole(1),
	}
	for _, one := range f("tests").list() {
		s.Tests = append(s.Tests, understandTest(s, one))
	}
	if len(s.Tests) == 0 {
		f("tests").wrong("a list of at least one test")
	}
	return s, nil
}

func understandTest(s *Study, test field) Test {
	f := test.object("name", "title", "note", "script", "settings", "columns", "cells", "base", "grid")
	t := Test{Name: f("name").name(), Title: f("title").text(), Note: f("note").optional(), Script: f("script").text(), Base: f("base").optional()}
	if s.test(t.Name) != nil {
		f("name").wrong("another name: there is a test of this one already")
	}
	for _, one := range f("columns").list() {
		c := one.object("title", "measured", "phase", "ratio")
		m, err := measure.Parse(c("measured").text())
		if err != nil {
			panic(mistake{c("measured").path, err.Error()})
		}
		t.Columns = append(t.Columns, Column{Title: c("title").text(), Measure: m, Phase: c("phase").optional(), Ratio: c("ratio").truth(true)})
	}
	if len(t.Columns) == 0 {
		f("columns").wrong("a list of at least one { title, measured }")
	}
	common := understandSettings(s, f("settings"))
	for _, one := range f("cells").list() {
		c := one.object("name", "settings", "processes", "before", "published")
		cell := Cell{Name: c("name").text(), Settings: understandSettings(s, c("settings"), common...)}
		cell.Processes = understandProcesses(s, &cell, c("processes"))
		if !c("before").missing() {
			cell.Before = append([]Setting{}, understandSettings(s, c("before"), cell.Settings...)...)
		} else if cell.Processes != nil {
			c("before").wrong("the settings of a run before it: processes that run together need one that makes the topic")
		}
		if t.cell(cell.Name) != nil {
			c("name").wrong("another name: there is a cell of this one already")
		}
		cell.Published = understandPublished(&t, c("published"))
		t.Cells = append(t.Cells, cell)
	}
	if len(t.Cells) == 0 {
		f("cells").wrong("a list of at least one cell")
	}
	if t.Base != "" && t.cell(t.Base) == nil {
		f("base").wrong("the name of one of its cells")
	}
	if !f("grid").missing() {
		t.Grid = understandGrid(&t, f("grid"))
	}
	return t
}

// understandProcesses takes a number of processes that are alike, or a list of what each is.
func understandProcesses(s *Study, c *Cell, processes field) (all []Process) {
	if !processes.isList() {
		if n := processes.whole(1); n > 1 {
			for range n {
				all = append(all, Process{Settings: c.Settings})
			}
		}
		return all
	}
	killed := 0
	for _, one := range processes.list() {
		f := one.object("settings", "kill")
		p := Process{Settings: understandSettings(s, f("settings"), c.Settings...)}
		if !f("kill").missing() {
			p.Kill = &sweep.Kill{After: f("kill").duration()}
			killed++
		}
		all = append(all, p)
	}
	if len(all) < 2 || killed == len(all) {
		processes.wrong("a list of at least two processes, of which at least one is not killed")
	}
	return all
}

// understandGrid takes two settings, by whose values each cell has its place.
func understandGrid(t *Test, grid field) []string {
	names := grid.texts()
	if len(names) != 2 || names[0] == names[1] {
		grid.wrong("a list of two settings")
	}
	places := map[[2]string]string{}
	for i := range t.Cells {
		c := &t.Cells[i]
		place := [2]string{c.setting(names[0]), c.setting(names[1])}
		if place[0] == "" || place[1] == "" {
			panic(mistake{grid.path, fmt.Sprintf("the cell %q lacks a value of %s or %s", c.Name, names[0], names[1])})
		}
		if other := places[place]; other != "" {
			panic(mistake{grid.path, fmt.Sprintf("the cells %q and %q have the same %s and %s", other, c.Name, names[0], names[1])})
		}
		places[place] = c.Name
	}
	return names
}

func understandSettings(s *Study, settings field, common ...Setting) []Setting {
	all := slices.Clone(common)
	settings.each(func(name string, value field) {
		one := Setting{Name: name}
		switch {
		case !environmentName.MatchString(name):
			value.wrong("named as a variable of the environment is, with letters, digits and _")
		case sweep.Reserved(name):
			panic(mistake{value.path, "it is the study's own: each cell is a test by itself, with a folder of its own"})
		case value.missing(), value.isText() && value.value.String() == "":
			one.None = true
		case value.isObject():
			one.From = understandMeasure(s, value)
		default:
			one.Value = value.scalar()
		}
		if at := slices.IndexFunc(all, func(s Setting) bool { return s.Name == name }); at >= 0 {
			all[at] = one
		} else {
			all = append(all, one)
		}
	})
	return all
}

func understandMeasure(s *Study, value field) *Measure {
	f := value.object("test", "cell", "column", "times")
	m := &Measure{Test: f("test").text(), Cell: f("cell").optional(), Column: f("column").text(), Times: 1}
	if !f("times").missing() {
		m.Times = f("times").positive()
	}
	switch t := s.test(m.Test); {
	case t == nil:
		f("test").wrong("the name of a test before this one")
	case m.Cell != "" && t.cell(m.Cell) == nil:
		f("cell").wrong("the name of a cell of the test " + m.Test)
	case t.column(m.Column) == nil:
		f("column").wrong("the title of a column of the test " + m.Test)
	}
	return m
}

func understandPublished(t *Test, published field) map[string]Published {
	all := map[string]Published{}
	published.each(func(title string, value field) {
		column := t.column(title)
		switch {
		case column == nil:
			panic(mistake{value.path, "there is no such column: the test has " + strings.Join(titles(t), ", ")})
		case value.missing():
		case value.isText():
			all[title] = Published{Words: value.text()}
		default:
			all[title] = Published{Number: value.positive() * column.scale()}
		}
	})
	return all
}

func titles(t *Test) (all []string) {
	for _, c := range t.Columns {
		all = append(all, c.Title)
	}
	return all
}

var (
	environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	folderName      = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
)

// mistake is the error of a field.
type mistake struct{ field, why string }

func (m mistake) Error() string { return m.field + ": " + m.why }

// field is a value of a study's file, and where it stands. Its methods end the understanding where it is not what they are named after.
type field struct {
	vm    *sobek.Runtime
	path  string
	value sobek.Value
}

func (f field) wrong(allowed string) { panic(mistake{f.path, fmt.Sprintf("%s is not %s", f, allowed)}) }

// String is the value as the file might have it, and short.
func (f field) String() string {
	if f.missing() {
		return "nothing"
	}
	text := f.value.String()
	switch {
	case f.isText():
		text = strconv.Quote(text)
	case f.isList():
		text = "a list"
	case f.isObject():
		text = "an object"
	}
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	return text
}

func (f field) missing() bool {
	return f.value == nil || sobek.IsUndefined(f.value) || sobek.IsNull(f.value)
}

func (f field) isText() bool {
	_, ok := f.export().(string)
	return ok
}

func (f field) isList() bool {
	_, ok := f.export().([]any)
	return ok
}

func (f field) isObject() bool {
	_, ok := f.export().(map[string]any)
	return ok
}

func (f field) export() any {
	if f.missing() {
		return nil
	}
	return f.value.Export()
}

// object gives a function that gives the object's fields, of which there are no others than these.
func (f field) object(allowed ...string) func(string) field {
	if !f.isObject() {
		f.wrong("an object of " + strings.Join(allowed, ", "))
	}
	object := f.value.ToObject(f.vm)
	for _, key := range object.Keys() {
		if !slices.Contains(allowed, key) {
			panic(mistake{f.path, fmt.Sprintf("there is no %q: its fields are %s", key, strings.Join(allowed, ", "))})
		}
	}
	return func(key string) field { return field{f.vm, f.path + "." + key, object.Get(key)} }
}

// each goes over the fields of an object, which may have any names, in their order.
func (f field) each(visit func(name string, value field)) {
	if f.missing() {
		return
	}
	if !f.isObject() {
		f.wrong("an object")
	}
	object := f.value.ToObject(f.vm)
	for _, key := range object.Keys() {
		visit(key, field{f.vm, f.path + "." + key, object.Get(key)})
	}
}

func (f field) list() (all []field) {
	if f.missing() {
		return nil
	}
	if !f.isList() {
		f.wrong("a list")
	}
	list := f.value.ToObject(f.vm)
	for i := range list.Get("length").ToInteger() {
		at := strconv.FormatInt(i, 10)
		all = append(all, field{f.vm, f.path + "[" + at + "]", list.Get(at)})
	}
	return all
}

func (f field) text() string {
	if !f.isText() || strings.TrimSpace(f.value.String()) == "" {
		f.wrong("a text")
	}
	return f.value.String()
}

func (f field) optional() string {
	if f.missing() {
		return ""
	}
	return f.text()
}

func (f field) texts() (all []string) {
	for _, one := range f.list() {
		all = append(all, one.text())
	}
	return all
}

// name is one of which a folder is made.
func (f field) name() string {
	if !folderName.MatchString(f.text()) {
		f.wrong("a name of small letters, digits and -")
	}
	return f.text()
}

func (f field) number() (n float64, ok bool) {
	switch v := f.export().(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func (f field) positive() float64 {
	n, ok := f.number()
	if !ok || !(n > 0) || math.IsInf(n, 0) {
		f.wrong("a number of more than 0")
	}
	return n
}

func (f field) duration() time.Duration {
	d, err := time.ParseDuration(f.text())
	if err != nil || d < 0 {
		f.wrong("a duration such as 5s or 500ms")
	}
	return d
}

func (f field) whole(fallback int) int {
	if f.missing() {
		return fallback
	}
	n, ok := f.number()
	if !ok || n < 1 || n > 1000 || n != math.Trunc(n) {
		f.wrong("a whole number from 1 to 1000")
	}
	return int(n)
}

func (f field) truth(fallback bool) bool {
	if f.missing() {
		return fallback
	}
	is, ok := f.export().(bool)
	if !ok {
		f.wrong("true or false")
	}
	return is
}

// scalar is the text of a setting.
func (f field) scalar() string {
	switch v := f.export().(type) {
	case string, int64, bool:
		return f.value.String()
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	f.wrong("a text, a number, true or false, or { test, cell, column, times }")
	return ""
}
