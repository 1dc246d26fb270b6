package sweep

import (
	_ "embed" // the page's content
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

//go:embed sweep.html
var content string

var page = report.Template(content)

// Findings is what a study has found so far, as its page shows it.
type Findings struct {
	Name    string
	Script  string // the name of its file
	Started time.Time
	Asked   []Fact
	Plan    Plan
	Columns []measure.Measure
	Named   bool  // the columns are those that somebody asked for, and all are shown
	Rows    []Row // in the order of time
}

// view is what sweep.html shows.
type view struct {
	Findings
	Total    int
	Constant Values // settings that have one value
	With     Values // of the environment
	Drift    Drift
	Groups   []groupView
	Failed   []Entry
	Cells    []cellView
	Heads    []string // of the columns that anything is known of
}

type groupView struct {
	Group
	Title   string
	Best    []string
	Charts  []string // their ids
	Heats   []heat
	Axes    []string
	Columns []string
	Lines   []lineView
}

type lineView struct {
	Settings []string
	Columns  []textView
	Runs     string // how many are valid
	All      bool   // all are
	Meaning  string
}

type textView struct {
	Label, Text, Title string
	Value              string // the number itself; "" where it is not known
	Doubted            bool
}

type cellView struct {
	Row
	Settings string
	Took     string
	Columns  []textView
	Page     string
	Log      string
}

// WriteHTML writes the study as one page.
func (f Findings) WriteHTML(w io.Writer) error {
	axes, err := f.Plan.Axes()
	if err != nil {
		return err
	}
	combinations := f.Plan.Combinations()
	v := view{Findings: f, Total: f.Plan.Repeat * len(combinations), Drift: DriftOf(f.Columns, f.Rows), With: FromEnvironment(f.Asked)}
	for _, a := range axes {
		if len(a.Points) == 1 {
			v.Constant = append(v.Constant, a.Points[0]...)
		}
	}
	p := report.Page{Title: f.Name}
	groups, failed := GroupsOf(combinations, f.Columns, f.Rows)
	v.Failed = failed
	for i, g := range groups {
		for k := range g.Entries {
			g.Entries[k].Settings = g.Entries[k].Settings.without(v.Constant)
		}
		gv, charts := f.groupView(fmt.Sprintf("group%d", i+1), g, varied(axes))
		v.Groups = append(v.Groups, gv)
		p.Charts = append(p.Charts, charts...)
	}
	shownColumns := f.known(f.Rows)
	for _, c := range shownColumns {
		v.Heads = append(v.Heads, f.Columns[c].Label())
	}
	for _, r := range f.Rows {
		c := cellView{Row: r, Settings: r.Cell.Settings.without(v.Constant).String(), Took: r.Ended.Sub(r.Started).Round(100 * time.Millisecond).String()}
		for _, k := range shownColumns {
			c.Columns = append(c.Columns, numberView(f.Columns[k], r.Numbers[k]))
		}
		c.Log = path.Join(CellsFolder, r.Cell.Folder, LogFile)
		if r.Error == "" {
			c.Page = path.Join(CellsFolder, r.Cell.Folder, report.PageFile)
		}
		v.Cells = append(v.Cells, c)
	}
	p.Body = v
	return p.Render(w, page)
}

// known are the columns that some row knows, or somebody asked for, by their places.
func (f Findings) known(rows []Row) (all []int) {
	for i := range f.Columns {
		if f.Named || slices.ContainsFunc(rows, func(r Row) bool { return r.Numbers[i].Known }) {
			all = append(all, i)
		}
	}
	return all
}

func numberView(m measure.Measure, n Number) textView {
	t := textView{Label: m.Label(), Text: "–", Title: n.Why}
	if n.Known {
		t.Text, t.Title, t.Doubted, t.Value = m.Show(n.Value)+n.sign(), n.Doubt, n.Doubt != "", fmt.Sprint(n.Value)
	}
	return t
}

func (f Findings) groupView(id string, g Group, axes []Axis) (groupView, []report.Chart) {
	gv := groupView{Group: g, Title: "Nothing was sent"}
	if g.Meaning != "" {
		gv.Title = "Confirmed means " + g.Meaning
	}
	var charts []report.Chart
	var rows []Row
	for _, e := range g.Entries {
		rows = append(rows, e.Cells...)
	}
	columns := f.known(rows)
	over, others, ok := curvesOver(axes)
	for _, c := range columns {
		if best := bestOf(c, f.Columns[c], g.Entries); best != "" {
			gv.Best = append(gv.Best, best)
		}
		if ok && f.Columns[c].Unit != "" {
			if chart, known := curves(fmt.Sprintf("%s-column%d", id, c+1), c, f.Columns[c], over, others, g.Entries); known {
				charts, gv.Charts = append(charts, chart), append(gv.Charts, chart.ID)
			}
		}
		if len(axes) == 2 {
			if h, known := heatOf(c, f.Columns[c], axes[0], axes[1], g.Entries); known {
				gv.Heats = append(gv.Heats, h)
			}
		}
		gv.Columns = append(gv.Columns, f.Columns[c].Label())
	}
	for _, a := range axes {
		gv.Axes = append(gv.Axes, a.Names...)
	}
	for _, e := range g.Entries {
		line := lineView{Runs: fmt.Sprintf("%d of %d", e.Valid, len(e.Cells)+e.Failed), All: e.Valid == len(e.Cells)+e.Failed, Meaning: g.Meaning}
		for _, name := range gv.Axes {
			line.Settings = append(line.Settings, e.Settings.Of(name))
		}
		for _, c := range columns {
			s := e.Columns[c]
			t := textView{Label: f.Columns[c].Label(), Text: s.text(f.Columns[c]), Title: s.Why, Doubted: s.Doubt != ""}
			if s.Count > 0 {
				t.Title, t.Value = s.Doubt, fmt.Sprint(s.Median)
			}
			line.Columns = append(line.Columns, t)
		}
		gv.Lines = append(gv.Lines, line)
	}
	return gv, charts
}

// bestOf says which combination has the greatest rate, or the least latency, of those whose cells are all valid and whose number can be relied on; "" where
// there are not two.
func bestOf(index int, m measure.Measure, entries []Entry) string {
	var best *Entry
	n := 0
	for i := range entries {
		e := &entries[i]
		s := e.Columns[index]
		if s.Count == 0 || s.Doubt != "" || e.Failed > 0 || e.Valid < len(e.Cells) {
			continue
		}
		n++
		if best == nil || m.Unit == "ns" && s.Median < best.Columns[index].Median || m.Unit != "ns" && s.Median > best.Columns[index].Median {
			best = e
		}
	}
	if n < 2 || m.Unit == "" {
		return ""
	}
	word := "greatest"
	if m.Unit == "ns" {
		word = "least"
	}
	return fmt.Sprintf("%s %s: %s at %s", word, m.Label(), best.Columns[index].text(m), best.Settings)
}
