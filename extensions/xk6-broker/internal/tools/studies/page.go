package studies

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
)

// TablesFile has what the page has, for a document.
const TablesFile = "tables.md"

//go:embed page.html
var pageText string

var pageTemplate = report.Template(pageText)

// ratios is what the numbers can be used for.
const ratios = "Ratios within the study carry over between machines; absolute figures do not: what was published was measured on another machine."

// page is what the page and the document show.
type page struct {
	*Study
	Command     string
	Said        string // by the environment, with the command
	Tables      []tableView
	Environment []fact
	Done, Of    int
	Ratios      string
}

type fact struct {
	Name   string
	Values []string
}

// tableView is a table as text.
type tableView struct {
	*Test
	Headers []header
	Groups  []groupView
	Remarks []remark
	NotRun  []NotRun
	Drift   []string
}

// header is a column's title, and what of it: as it was published, as it was measured, or as a multiple of the base's.
type header struct{ Title, Of string }

const (
	published = "published"
	measured  = "measured"
	none      = "–" // nothing is known
)

type groupView struct {
	Proof string
	Rows  []rowView
	Grids []gridView // in place of the rows, where the test has a grid
}

type rowView struct {
	Name  string
	Mark  string      // ✗ where a run failed or is not valid
	Pages []pageOfRun // of the runs
	Cells []cellView
}

type pageOfRun struct {
	Number int
	To     string
}

type cellView struct{ Text, Why, Header string }

// remark is what must be known of a row.
type remark struct{ Row, Text string }

func (r *Run) write() error {
	v := page{Study: r.Study, Ratios: ratios, Command: r.Command, Said: r.said(), Environment: r.environment(), Done: len(r.known)}
	for _, p := range r.planned {
		if r.why(p) == "" {
			v.Of++
		}
	}
	for _, t := range r.tables() {
		v.Tables = append(v.Tables, newTableView(t))
	}
	return errors.Join(
		report.WriteAtomic(filepath.Join(r.Folder, sweep.PageFile), func(w io.Writer) error {
			return report.Page{Title: r.Study.Title, Body: v}.Render(w, pageTemplate)
		}),
		report.WriteAtomic(filepath.Join(r.Folder, TablesFile), func(w io.Writer) error {
			_, err := io.WriteString(w, v.markdown())
			return err
		}))
}

func newTableView(t Table) tableView {
	v := tableView{Test: t.Test, NotRun: t.NotRun, Drift: t.Drift}
	known := make([]bool, len(t.Columns)) // whether anything was published of it
	for i, c := range t.Columns {
		known[i] = slices.ContainsFunc(t.Cells, func(of Cell) bool { _, ok := of.Published[c.Title]; return ok })
		if known[i] {
			v.Headers = append(v.Headers, header{c.Title, published})
		}
		v.Headers = append(v.Headers, header{c.Title, measured})
		if t.Base != "" && c.Ratio && known[i] {
			v.Headers = append(v.Headers, header{c.Title, "× base, published"})
		}
		if t.Base != "" && c.Ratio {
			v.Headers = append(v.Headers, header{c.Title, "× base, measured"})
		}
	}
	for i, c := range t.Columns {
		if why, unknown := t.unknown(i); c.Phase != "" && unknown {
			v.Remarks = append(v.Remarks, remark{c.Title, why})
		}
	}
	for _, g := range t.Groups {
		group := groupView{Proof: g.Proof}
		for _, row := range g.Rows {
			view := rowView{Name: row.Name}
			for i, to := range row.Pages {
				view.Pages = append(view.Pages, pageOfRun{i + 1, to})
			}
			for i, value := range row.Values {
				if known[i] {
					view.Cells = append(view.Cells, cellView{Text: value.published(&t.Columns[i])})
				}
				view.Cells = append(view.Cells, value.measured(&t.Columns[i]))
				if ratio := t.Base != "" && t.Columns[i].Ratio; ratio && known[i] {
					view.Cells = append(view.Cells, cellView{Text: times(value.Original)})
				}
				if t.Base != "" && t.Columns[i].Ratio {
					ratio := cellView{Text: times(value.Measured), Why: value.Unsure}
					if ratio.Why != "" {
						ratio.Text += "?"
					}
					view.Cells = append(view.Cells, ratio)
				}
			}
			for i := range view.Cells {
				view.Cells[i].Header = v.Headers[i].Title + " " + v.Headers[i].Of
			}
			for _, text := range slices.Concat(row.Failed, row.Invalid) {
				view.Mark = "✗"
				v.Remarks = append(v.Remarks, remark{row.Name, text})
			}
			group.Rows = append(group.Rows, view)
		}
		if t.Grid != nil {
			group.Grids = grids(&t, g.Rows, &v, group.Rows)
		}
		v.Groups = append(v.Groups, group)
	}
	return v
}

// unknown tells whether no row knows a column, and why.
func (t *Table) unknown(column int) (why string, unknown bool) {
	for _, g := range t.Groups {
		for _, row := range g.Rows {
			if row.Values[column].Known {
				return "", false
			}
			why = row.Values[column].Why
		}
	}
	return why, why != ""
}

func (v *Value) published(c *Column) string {
	switch {
	case v.Published == nil:
		return none
	case v.Published.Words != "":
		return v.Published.Words
	}
	return c.Measure.Show(v.Published.Number)
}

// measured is the median of the repetitions, with the least and the greatest of them.
func (v *Value) measured(c *Column) cellView {
	if !v.Known {
		return cellView{Text: none, Why: v.Why}
	}
	text := c.Measure.Show(v.Median)
	if v.Low != v.High {
		text += fmt.Sprintf(" (%s to %s)", c.Measure.Show(v.Low), c.Measure.Show(v.High))
	}
	if v.Doubt != "" {
		text += "?"
	}
	return cellView{Text: text, Why: v.Doubt}
}

func times(ratio float64) string {
	if ratio == 0 {
		return none
	}
	return fmt.Sprintf("%.3g", ratio)
}

// environment is the machine and the versions, of all runs.
func (r *Run) environment() (facts []fact) {
	all := map[string]map[string]bool{}
	note := func(name, value string) {
		if value == "" {
			return
		}
		if all[name] == nil {
			all[name] = map[string]bool{}
		}
		all[name][value] = true
	}
	for _, o := range r.known {
		if o.Result == nil {
			continue
		}
		for name, value := range o.Result.Environment {
			note(name, value)
		}
		for i := range o.Result.Topics {
			t := &o.Result.Topics[i]
			note("server, "+t.Driver, t.Info.Server)
			note("client, "+t.Driver, t.Info.Client)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		facts = append(facts, fact{name, slices.Sorted(maps.Keys(all[name]))})
	}
	return facts
}

// Joined are the values in one text.
func (f fact) Joined() string { return strings.Join(f.Values, "; ") }
