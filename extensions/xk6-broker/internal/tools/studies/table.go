package studies

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// Table is a test with what was measured.
type Table struct {
	*Test
	Groups []Group
	NotRun []NotRun
	Drift  []string // what became another one while it was run, a sentence each
}

// Group is the rows in which "confirmed" proved the same: no row of one can be ranked with one of another.
type Group struct {
	Proof string
	Rows  []Row
}

// Row is a cell of a test with what was measured.
type Row struct {
	*Cell
	Values  []Value  // one for each column
	Invalid []string // why some of its runs are not valid
	Failed  []string // why some of its runs have no result
	Pages   []string // of its runs, from the page of the study

	unaccounted bool // of some of its runs not even the account is valid
}

// stands tells whether what was measured can be built on. A rate is no less for latencies that are not valid: what counts is how many messages there were.
func (r *Row) stands(m measure.Measure) bool {
	if m.Stat == "rate" {
		return !r.unaccounted
	}
	return len(r.Invalid) == 0
}

// NotRun is a cell that was not run, and why.
type NotRun struct{ Cell, Why string }

// Value is what was measured of a cell in one column, beside what was published.
type Value struct {
	Known             bool
	Median, Low, High float64 // of the repetitions
	Why               string  // where it is not known
	Doubt             string  // why it may not be what it seems
	Published         *Published
	// How many times the base's, in what was measured and in what was published; 0 where that is not known.
	Measured, Original float64
	Unsure             string // why the first may not be what it seems
}

// Outcome is one run of a cell.
type Outcome struct {
	sweep.Outcome
	cell int // of the test
}

// tabulate makes the table of a test.
func tabulate(t *Test, outcomes []Outcome, notRun []NotRun) Table {
	table := Table{Test: t, NotRun: notRun}
	rows := make([]*Row, 0, len(t.Cells))
	for i := range t.Cells {
		all := slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool { return o.cell != i })
		if len(all) > 0 {
			rows = append(rows, newRow(t, &t.Cells[i], all))
		}
	}
	for _, row := range rows {
		row.against(t, rows)
	}
	// In the order of the file, each group where its first row is.
	proofs := map[string]int{}
	for i, row := range rows {
		proof := proofOf(outcomes, slices.IndexFunc(t.Cells, func(c Cell) bool { return c.Name == rows[i].Name }))
		at, ok := proofs[proof]
		if !ok {
			at = len(table.Groups)
			proofs[proof] = at
			table.Groups = append(table.Groups, Group{Proof: proof})
		}
		table.Groups[at].Rows = append(table.Groups[at].Rows, *row)
	}
	table.Drift = drift(t, outcomes)
	return table
}

// drift tells what drifted, by the repetitions of each cell in the order of time.
func drift(t *Test, outcomes []Outcome) []string {
	var columns []measure.Measure
	for _, c := range t.Columns {
		if c.Phase == "" {
			columns = append(columns, c.Measure)
		}
	}
	var rows []sweep.Row
	for _, o := range outcomes {
		o.Cell.Settings = sweep.Values{{Name: "cell", Value: t.Cells[o.cell].Name}}
		rows = append(rows, sweep.NewRow(o.Outcome, columns))
	}
	slices.SortFunc(rows, func(a, b sweep.Row) int { return a.Started.Compare(b.Started) })
	return sweep.DriftOf(columns, rows).Findings
}

func newRow(t *Test, c *Cell, outcomes []Outcome) *Row {
	row := &Row{Cell: c}
	var results []*result.Result
	for _, o := range outcomes {
		if o.Result == nil {
			row.Failed = append(row.Failed, o.Error)
			continue
		}
		row.Pages = append(row.Pages, path.Join(sweep.CellsFolder, o.Cell.Folder, report.PageFile))
		results = append(results, o.Result)
		if !o.Result.Verdict.Valid {
			row.Invalid = append(row.Invalid, reason.Codes(o.Result.Verdict.Invalid()))
			row.unaccounted = row.unaccounted || !o.Result.Verdict.Account
		}
	}
	for i := range t.Columns {
		v := t.Columns[i].of(results)
		if p, ok := c.Published[t.Columns[i].Title]; ok {
			v.Published = &p
		}
		row.Values = append(row.Values, v)
	}
	row.Invalid, row.Failed = once(row.Invalid), once(row.Failed)
	return row
}

// once leaves out what was said before.
func once(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// of reads the column of all repetitions.
func (c *Column) of(runs []*result.Result) (v Value) {
	var values []float64
	for _, r := range runs {
		value, doubt, err := c.ofRun(r)
		if err != nil {
			v.Why = err.Error()
			continue
		}
		values = append(values, value)
		if v.Doubt == "" {
			v.Doubt = doubt
		}
	}
	if len(runs) == 0 {
		v.Why = "no run has a result"
	}
	if v.Known = len(values) > 0; v.Known {
		v.Median, v.Low, v.High, v.Why = stationary.Median(values), slices.Min(values), slices.Max(values), ""
	}
	return v
}

func (c *Column) ofRun(r *result.Result) (value float64, doubt string, err error) {
	if c.Phase != "" {
		if r = r.During(c.Phase); r == nil {
			return 0, "", fmt.Errorf("the run has no phase %q", c.Phase)
		}
	}
	if value, err = c.Measure.OfRun(r); err != nil {
		return 0, "", err
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, "", errors.New("it is no number")
	}
	low, high := c.Measure.DoubtOfRun(r)
	if low != "" {
		return value, low, nil
	}
	return value, high, nil
}

// against puts the ratios to the test's base into a row.
func (r *Row) against(t *Test, rows []*Row) {
	at := slices.IndexFunc(rows, func(of *Row) bool { return of.Name == t.Base })
	if at < 0 {
		return
	}
	for i := range r.Values {
		v, base := &r.Values[i], rows[at].Values[i]
		if v.Known && base.Known && base.Median > 0 {
			v.Measured = v.Median / base.Median
			v.Unsure = cmp.Or(v.Doubt, base.Doubt)
			if !rows[at].stands(t.Columns[i].Measure) {
				v.Unsure = fmt.Sprintf("the base, %q, is not valid: %s", t.Base, strings.Join(rows[at].Invalid, "; "))
			}
		}
		if v.Published != nil && base.Published != nil && base.Published.Number > 0 {
			v.Original = v.Published.Number / base.Published.Number
		}
	}
}

// proofOf says what "confirmed" proved in the runs of a cell.
func proofOf(outcomes []Outcome, cell int) string {
	for _, o := range outcomes {
		if o.cell != cell || o.Result == nil {
			continue
		}
		if _, meaning := sweep.Proof(o.Result); meaning != "" {
			return meaning
		}
	}
	return ""
}
