package studies

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

func (r *Run) write() error {
	s := r.Data
	page := cells.Page{Title: s.Title, Asked: r.Asked}
	if s.Source.URL != "" {
		text := "Compare ratios within the study: the published numbers were measured on another machine."
		page.Intro = []cells.Text{
			{Text: s.Question},
			{Text: s.Source.Citation, Link: s.Source.URL},
			{Text: s.Original},
			{Text: r.Command},
			{Text: text},
		}
	}
	var lacking, drift []string
	for _, t := range s.Tests {
		page.Tables = append(page.Tables, r.table(t))
		drift = append(drift, r.drift(t)...)
		for _, c := range t.Cells {
			if name := c.lacks(); name != "" {
				lacking = append(lacking, fmt.Sprintf("%s, %s: %s has no value", t.Name, c.Name, name))
			}
		}
	}
	if len(drift) > 0 {
		page.Verdict = "Drift: runs with the same settings gave different numbers as time went by"
	}
	page.Lists = []cells.List{
		{Title: "Drift", Items: drift},
		{Title: "Published conclusions", Items: s.Claims},
		{Title: "Differences from the original", Items: s.Changed},
		{Title: "Not run", Items: lacking},
		{Title: "Machine and versions", Items: r.machine()},
	}
	if r.Extend != nil {
		r.Extend(&page, r.runs)
	}
	page.Tables = append(page.Tables, r.all())
	return page.Write(r.Folder)
}

// all returns the table of all runs. A sweep shows the columns of its only test.
func (r *Run) all() cells.Table {
	var columns []cells.Column
	if len(r.Data.Tests) == 1 {
		for _, c := range r.Data.Tests[0].Columns {
			columns = append(columns, c.Column)
		}
	}
	heads := append([]string{"cell", "repetition"}, r.Settings...)
	return cells.Runs(r.runs, columns, heads, func(o cells.Outcome) []string {
		texts := []string{r.planned[o.Folder].cell.Name, fmt.Sprint(o.Repetition)}
		for _, name := range r.Settings {
			texts = append(texts, o.Settings.Get(name))
		}
		return texts
	})
}

// table returns the table of a test. A cell with a run that failed or is not valid has a mark.
func (r *Run) table(t *Test) cells.Table {
	table := cells.Table{Title: t.Title, Note: t.Note, Heads: []string{""}}
	columns := slices.DeleteFunc(slices.Clone(t.Columns), func(c *Column) bool {
		return !c.isPublished(t) && c.Number(r.runs...).Missing != ""
	})
	for _, c := range columns {
		if c.isPublished(t) {
			table.Heads = append(table.Heads, c.Title+", published")
		}
		table.Heads = append(table.Heads, c.Title)
		if c.hasRatio(t) {
			table.Heads = append(table.Heads, "× base, published", "× base")
		}
	}
	table.Heads = append(table.Heads, "confirmed means")
	for _, cell := range t.Cells {
		runs := r.runsOf(cell)
		if len(runs) == 0 {
			continue
		}
		proof, mark := "", ""
		for _, o := range runs {
			proof = cmp.Or(proof, o.Proof())
		}
		if !allValid(runs) {
			mark = " ✗"
		}
		row := []cells.Text{{Text: cell.Name + mark}}
		for _, c := range columns {
			row = append(row, r.numbers(t, cell, c)...)
		}
		table.Rows = append(table.Rows, append(row, cells.Text{Text: proof}))
	}
	return table
}

// numbers returns the published and the measured number of a cell, and their multiples of the base.
func (r *Run) numbers(t *Test, cell *Cell, c *Column) (row []cells.Text) {
	number := c.Number(r.runsOf(cell)...)
	published, text := c.published(cell)
	if c.isPublished(t) {
		row = append(row, cells.Text{Text: text})
	}
	row = append(row, c.Show(number))
	if c.hasRatio(t) {
		base := t.cell(t.Base)
		runs := r.runsOf(base)
		publishedBase, _ := c.published(base)
		row = append(row, ratio(published, publishedBase, true))
		against := c.Number(runs...)
		doubt := cmp.Or(number.Doubt, against.Doubt)
		row = append(row, ratio(number.Value, against.Value, doubt == "" && allValid(runs)))
	}
	return row
}

func allValid(runs []cells.Outcome) bool {
	return !slices.ContainsFunc(runs, func(o cells.Outcome) bool { return !o.Valid() })
}

func (c *Column) isPublished(t *Test) bool {
	return slices.ContainsFunc(t.Cells, func(cell *Cell) bool { return cell.Published[c.Title] != nil })
}

// hasRatio reports whether the column is shown as a multiple of the base, too.
func (c *Column) hasRatio(t *Test) bool { return t.Base != "" && (c.Ratio == nil || *c.Ratio) }

func ratio(n, base float64, sound bool) cells.Text {
	if n == 0 || base == 0 {
		return cells.Text{Text: "–"}
	}
	text := fmt.Sprintf("%.3g", n/base)
	if !sound {
		text += "?"
	}
	return cells.Text{Text: text}
}

// drift tests whether runs of the same cell gave other numbers as time went by: each number is
// divided by the median of its cell.
func (r *Run) drift(t *Test) (findings []string) {
	const level = 0.01
	for _, c := range t.Columns {
		var shares []float64
		for _, o := range r.runs {
			row := r.planned[o.Folder]
			if row.test != t || c.Unit == "" || r.Data.Repeat < 2 {
				continue
			}
			if n := c.Number(o); n.Missing == "" && n.Value > 0 {
				shares = append(shares, n.Value/c.Number(r.runsOf(row.cell)...).Value)
			}
		}
		if trend, ok := stationary.Test(shares, level/float64(len(t.Columns))); ok {
			text := fmt.Sprintf("%s: %s changed by %+.0f %% over the study (%s)", t.Title, c.Title, 100*trend.By, trend)
			findings = append(findings, text)
		}
	}
	return findings
}

// machine returns the facts of the machines and the versions of all runs.
func (r *Run) machine() (facts []string) {
	for _, o := range r.runs {
		if o.Result == nil {
			continue
		}
		for name, value := range o.Result.Environment {
			facts = append(facts, name+": "+value)
		}
		for _, t := range o.Result.Topics {
			facts = append(facts, fmt.Sprintf("%s: server %s, client %s", t.Driver, t.Info.Server, t.Info.Client))
		}
	}
	slices.Sort(facts)
	return slices.Compact(facts)
}
