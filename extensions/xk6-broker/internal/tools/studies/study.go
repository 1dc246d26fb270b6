// Package replay is a study as code: a file says what is run, with which settings, and what was published of each; the runner of internal/study runs
// it, and a page has what was measured beside what was published.
package studies

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
)

// Study is what a study's file exports.
type Study struct {
	Title    string
	Question string
	Source   Source
	Original string   // on what was published was measured
	Brokers  []string // that it needs, by their names in scripts/broker
	Changed  []string // what could not be kept the same
	Claims   []string // conclusions that were published
	Repeat   int
	Tests    []Test

	Folder      string       // of its file, which scripts' paths are relative to
	Environment sweep.Values // what the file read of it
}

// Source is where a study was published.
type Source struct{ Citation, URL string }

// Test is a table: cells that are compared with one another, run in shuffled order.
type Test struct {
	Name    string
	Title   string
	Note    string
	Script  string // as the file has it
	Columns []Column
	Cells   []Cell
	Base    string   // the cell that the others are measured against; "" for none
	Grid    []string // two settings whose values are the rows and the columns that cells are shown in; nil for a row each
}

// Column is what is shown of each cell.
type Column struct {
	Title   string
	Measure measure.Measure
	Phase   string // of the run; "" for the one that leads
	Ratio   bool   // it is shown as a multiple of the base's, too
}

// Cell is a row: a script with settings, and what was published of these.
type Cell struct {
	Name      string
	Settings  []Setting
	Processes []Process // of k6 that run it together; nil where it is one
	Before    []Setting // of a run before it, which is not measured; nil for none
	Published map[string]Published
}

// Process is one of those that run a cell together.
type Process struct {
	Settings []Setting // the cell's, with its own
	Kill     *sweep.Kill
}

// Setting is a variable of the script's environment.
type Setting struct {
	Name  string
	Value string
	From  *Measure // what another test measured; nil where the value is given
	None  bool     // it has no value here, and so the cell cannot be run
}

// Measure is a value that is taken from another test: from a cell or, where that is "", the greatest of all.
type Measure struct {
	Test, Cell, Column string
	Times              float64 // that is how much of it
}

// Published is a number or, of what is none, words.
type Published struct {
	Number float64 // in the measure's unit
	Words  string
}

// test gives the test of that name; nil where there is none.
func (s *Study) test(name string) *Test {
	for i := range s.Tests {
		if s.Tests[i].Name == name {
			return &s.Tests[i]
		}
	}
	return nil
}

func (t *Test) cell(name string) *Cell {
	for i := range t.Cells {
		if t.Cells[i].Name == name {
			return &t.Cells[i]
		}
	}
	return nil
}

// all are the settings of every run of the cell.
func (c *Cell) all() []Setting {
	all := slices.Concat(c.Settings, c.Before)
	for _, p := range c.Processes {
		all = append(all, p.Settings...)
	}
	return all
}

// setting is the value of a cell's setting as the file has it; "" where it has none.
func (c *Cell) setting(name string) string {
	for _, s := range c.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

func (t *Test) column(title string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Title == title {
			return &t.Columns[i]
		}
	}
	return nil
}

// scale is what a number in a study's file is multiplied by: latencies are milliseconds there, as in k6.
func (c *Column) scale() float64 {
	if c.Measure.Unit == "ns" {
		return 1e6
	}
	return 1
}

func (s *Study) names() []string {
	names := make([]string, len(s.Tests))
	for i := range s.Tests {
		names[i] = s.Tests[i].Name
	}
	return names
}
