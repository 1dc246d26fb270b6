package studies

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// TablesFile has what was measured beside what was published.
const TablesFile = "tables.md"

// none stands for a number that is not known.
const none = "–"

// of reads the column of a run.
func (c *Column) of(r *result.Result) sweep.Number {
	if r != nil && c.Phase != "" {
		if r = r.During(c.Phase); r == nil {
			return sweep.Number{Why: fmt.Sprintf("the run has no phase %q", c.Phase)}
		}
	}
	return sweep.NumberOf(r, c.measure)
}

func (c *Column) median(runs []outcome) sweep.Number {
	numbers := make([]sweep.Number, len(runs))
	for i, o := range runs {
		numbers[i] = c.of(o.Result)
	}
	return sweep.Median(numbers)
}

// sound reports whether other numbers can build on those of runs. A rate only needs a valid account.
func (c *Column) sound(runs []outcome) bool {
	return !slices.ContainsFunc(runs, func(o outcome) bool {
		return o.Result == nil || !o.Result.Verdict.Valid && (!o.Result.Verdict.Account || c.measure.Stat != "rate")
	})
}

// published returns the published number of a cell, in the measure's unit, and its text.
func (c *Column) published(cell *Cell) (number float64, text string) {
	switch v := cell.Published[c.Title].(type) {
	case string:
		return 0, v
	case float64:
		return v * c.scale(), c.measure.Show(v * c.scale())
	}
	return 0, none
}

func (r *Run) write() error {
	return report.WriteAtomic(filepath.Join(r.Folder, TablesFile), func(w io.Writer) error {
		_, err := io.WriteString(w, r.markdown())
		return err
	})
}

// markdown returns the tables as a document.
func (r *Run) markdown() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	s := r.Study
	line("# %s\n\n%s\n\nPublished: [%s](%s)", s.Title, s.Question, s.Source.Citation, s.Source.URL)
	if s.Original != "" {
		line("\nMeasured there on %s.", s.Original)
	}
	line("\n    %s\n", r.Command)
	line("Compare ratios within the study: the published numbers were measured on another machine.\n")
	runs := slices.DeleteFunc(slices.Clone(r.planned), func(p planned) bool { return p.cell.lacks() != "" })
	if len(r.done) < len(runs) {
		line("%d of %d runs are done.\n", len(r.done), len(runs))
	}
	list(&b, "Published conclusions:", s.Claims)
	list(&b, "Differences from the original:", s.Changed)
	for i := range s.Tests {
		r.table(&b, &s.Tests[i])
	}
	line("## Machine and versions\n")
	rows := [][]string{{"", ""}}
	facts := r.environment()
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		rows = append(rows, []string{name, strings.Join(facts[name], "; ")})
	}
	table(&b, rows)
	return b.String()
}

// table writes the table of a test, and its remarks.
func (r *Run) table(b *strings.Builder, t *Test) {
	fmt.Fprintf(b, "## %s\n\n", t.Title)
	if t.Note != "" {
		fmt.Fprintf(b, "%s\n\n", t.Note)
	}
	base := slices.IndexFunc(t.Cells, func(c Cell) bool { return c.Name == t.Base })
	if base >= 0 {
		fmt.Fprintf(b, "The base is %q.\n\n", t.Base)
	}
	rows := [][]string{{""}}
	var remarks, notRun []string
	for i := range t.Columns {
		c := &t.Columns[i]
		rows[0] = append(rows[0], c.Title+", published", c.Title+", measured")
		if base >= 0 && (c.Ratio == nil || *c.Ratio) {
			rows[0] = append(rows[0], "× base, published", "× base, measured")
		}
	}
	rows[0] = append(rows[0], "confirmed means")
	for k := range t.Cells {
		cell := &t.Cells[k]
		runs := r.of(cell)
		if len(runs) == 0 {
			if cell.lacks() != "" {
				notRun = append(notRun, cell.Name+": "+r.why(cell))
			}
			continue
		}
		mark, meaning := "", ""
		var pages []string
		for i, o := range runs {
			switch {
			case o.Result == nil:
				mark, remarks = " ✗", append(remarks, cell.Name+": "+o.Error)
				continue
			case !o.Result.Verdict.Valid:
				mark, remarks = " ✗", append(remarks, cell.Name+": "+reason.Codes(o.Result.Verdict.Invalid()))
			}
			meaning = cmp.Or(meaning, sweep.Proof(o.Result))
			pages = append(pages, fmt.Sprintf("[%d](%s)", i+1, path.Join(sweep.CellsFolder, o.planned.Folder, report.PageFile)))
		}
		row := []string{strings.TrimSpace(cell.Name + mark + " " + strings.Join(pages, " "))}
		for i := range t.Columns {
			c := &t.Columns[i]
			n := c.median(runs)
			if !n.Known && c.Phase != "" {
				remarks = append(remarks, cell.Name+": "+n.Why)
			}
			was, text := c.published(cell)
			row = append(row, text, n.Show(c.measure).Text)
			if base >= 0 && (c.Ratio == nil || *c.Ratio) {
				baseWas, _ := c.published(&t.Cells[base])
				against := r.of(&t.Cells[base])
				row = append(row, ratio(was, baseWas, true), ratio(n.Value, c.median(against).Value, n.Doubt == "" && c.sound(against)))
			}
		}
		rows = append(rows, append(row, meaning))
	}
	if len(rows) > 1 {
		table(b, rows)
	}
	slices.Sort(remarks)
	list(b, "✗ Failed or not valid:", slices.Compact(remarks))
	list(b, "Not run:", notRun)
}

func ratio(n, base float64, sound bool) string {
	if n == 0 || base == 0 {
		return none
	}
	text := fmt.Sprintf("%.3g", n/base)
	if !sound {
		text += "?"
	}
	return text
}

// environment returns the machine and the versions of all runs.
func (r *Run) environment() map[string][]string {
	all := map[string][]string{}
	add := func(name, value string) {
		if value != "" && !slices.Contains(all[name], value) {
			all[name] = append(all[name], value)
		}
	}
	for _, o := range r.done {
		if o.Result == nil {
			continue
		}
		for name, value := range o.Result.Environment {
			add(name, value)
		}
		for _, t := range o.Result.Topics {
			add("server, "+t.Driver, t.Info.Server)
			add("client, "+t.Driver, t.Info.Client)
		}
	}
	return all
}

func list(b *strings.Builder, title string, texts []string) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(b, "%s\n\n", title)
	for _, t := range texts {
		fmt.Fprintf(b, "- %s\n", strings.Join(strings.Fields(t), " "))
	}
	b.WriteString("\n")
}

// table writes rows; the first has the titles.
func table(b *strings.Builder, rows [][]string) {
	for i, row := range rows {
		for _, text := range row {
			b.WriteString("| " + strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("---:|", len(row)-1) + "\n")
		}
	}
	b.WriteString("\n")
}
