package studies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
)

func (r *Run) write() error {
	s := r.Data
	slices.SortStableFunc(r.runs, func(a, b cells.Outcome) int { return a.Started.Compare(b.Started) })
	page := cells.Page{Title: s.Title, Asked: r.Asked}
	if s.Source.URL != "" {
		page.Intro = []cells.Text{
			{Text: s.Question},
			{Text: s.Source.Citation, Link: s.Source.URL},
			{Text: s.Original},
			{Text: r.Command},
			{Text: "Compare ratios within the study: the published numbers were measured on another machine. " +
				"✗ is a run that is not valid, with the reasons. ? is a value that is not reliable; a rate or count with ? is " +
				"of a run of which only the latencies are not. – is not published, has too few samples, or is of a run that is not valid."},
		}
	}
	var left []string
	for _, t := range s.Tests {
		page.Tables = append(page.Tables, r.table(t))
		for _, c := range t.Cells {
			if name := c.missing(); name != "" {
				left = append(left, fmt.Sprintf("%s: %s has no value", c.row, name))
			} else if t.Rate != nil && r.rate(t.Rate) == 0 {
				left = append(left, fmt.Sprintf("%s: no valid run of %s gives its rate", c.row, t.Rate.Test))
			}
		}
	}
	page.Lists = []cells.List{
		{Title: "Published conclusions", Items: s.Claims},
		{Title: "Differences from the original", Items: s.Changed},
		{Title: "Not run", Items: left},
		{Title: "Machine and versions", Items: r.machine()},
	}
	all := r.sweep(&page)
	page.Tables = append(page.Tables, all)
	return page.Write(r.Folder)
}

// sweep adds the charts of a sweep. It returns the table of all runs, with the numbers of a sweep.
func (r *Run) sweep(page *cells.Page) cells.Table {
	var columns []*cells.Column
	if r.Data.axis != "" {
		columns = r.Data.Tests[0].Columns
	}
	for _, c := range columns {
		chart := c.Chart(r.Data.axis, r.runs, func(o cells.Outcome) (tick, line string) {
			others := maps.Clone(o.Settings)
			delete(others, r.Data.axis)
			return o.Settings.Show(r.Data.axis), others.String()
		})
		if len(chart.Lines) > 0 {
			page.Charts = append(page.Charts, chart)
		}
	}
	heads := append([]string{"cell", "repetition"}, r.Data.varied...)
	return cells.Runs(r.runs, columns, heads, func(o cells.Outcome) []string {
		texts := []string{o.Row, fmt.Sprint(o.Repetition)}
		for _, name := range r.Data.varied {
			texts = append(texts, o.Settings.Show(name))
		}
		return texts
	})
}

// table returns the table of a test. A row with a run that is not valid has the reason.
func (r *Run) table(t *Test) cells.Table {
	table := cells.Table{Title: t.Title, Note: t.Note, Heads: []string{""}}
	measured := cells.Measured(t.Columns, r.runsOf(t.Cells...)...)
	columns := slices.DeleteFunc(slices.Clone(t.Columns), func(c *cells.Column) bool {
		return !t.publishes(c) && !slices.Contains(measured, c)
	})
	for _, c := range columns {
		if t.publishes(c) {
			table.Heads = append(table.Heads, c.Title+", published")
		}
		table.Heads = append(table.Heads, c.Title)
		if t.divides(c) {
			table.Heads = append(table.Heads, "× base, published", "× base")
		}
	}
	table.Heads = append(table.Heads, "confirmed means")
	for _, cell := range t.Cells {
		runs := r.runsOf(cell)
		if len(runs) == 0 {
			continue
		}
		name, proof := cell.Name, ""
		for _, o := range runs {
			proof = cmp.Or(proof, o.Proof())
			if !o.Valid() {
				name = cell.Name + " ✗ " + o.Verdict()
			}
		}
		row := []cells.Text{{Text: name}}
		for _, c := range columns {
			row = append(row, r.numbers(t, cell, c)...)
		}
		table.Rows = append(table.Rows, append(row, cells.Text{Text: proof}))
	}
	return table
}

// numbers returns the published and the measured number of a cell, and their multiples of the base.
func (r *Run) numbers(t *Test, cell *Cell, c *cells.Column) (row []cells.Text) {
	number := r.number(cell, c)
	published, text := cell.published(c)
	if t.publishes(c) {
		row = append(row, cells.Text{Text: text})
	}
	row = append(row, c.Show(number))
	if t.divides(c) {
		base := t.cell(t.Base)
		against := r.number(base, c)
		before, _ := base.published(c)
		doubt := cmp.Or(number.TooLow, number.TooHigh, against.TooLow, against.TooHigh)
		row = append(row, ratio(published, before, true), ratio(number.Median, against.Median, doubt == ""))
	}
	return row
}

// publishes reports whether a column has a published number.
func (t *Test) publishes(c *cells.Column) bool {
	return slices.ContainsFunc(t.Cells, func(cell *Cell) bool { return cell.Published[c.Title] != nil })
}

// divides reports whether a column is shown as a multiple of the base, too.
func (t *Test) divides(c *cells.Column) bool { return t.Base != "" && (c.Ratio == nil || *c.Ratio) }

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
