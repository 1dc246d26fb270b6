package replay

import (
	"fmt"
	"strings"
)

// markdown is the page for a document.
func (v *page) markdown() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# %s\n", v.Title)
	line("%s\n", v.Question)
	line("Published: [%s](%s). %s\n", v.Source.Citation, v.Source.URL, v.Original)
	line("    %s\n", v.Command)
	line("%s\n", v.Ratios)
	if v.Done < v.Of {
		line("%d of %d runs are in it.\n", v.Done, v.Of)
	}
	list(&b, "Concluded in what was published:", v.Claims)
	list(&b, "Not kept the same:", v.Changed)
	for _, t := range v.Tables {
		line("## %s\n", t.Title)
		if t.Note != "" {
			line("%s\n", t.Note)
		}
		if t.Base != "" {
			line("The base is %q.\n", t.Base)
		}
		for _, g := range t.Groups {
			if g.Proof != "" {
				line("Confirmed means %s:\n", g.Proof)
			}
			titles, rule := []string{""}, []string{"---"}
			for _, h := range t.Headers {
				titles, rule = append(titles, cell(h.Title+", "+h.Of)), append(rule, "---:")
			}
			line("| %s |\n|%s|", strings.Join(titles, " | "), strings.Join(rule, "|"))
			for _, row := range g.Rows {
				cells := []string{cell(strings.TrimSpace(row.Name + " " + row.Mark))}
				for _, c := range row.Cells {
					cells = append(cells, cell(c.Text))
				}
				line("| %s |", strings.Join(cells, " | "))
			}
			line("")
		}
		var remarks []string
		for _, r := range t.Remarks {
			remarks = append(remarks, r.Row+": "+r.Text)
		}
		list(&b, "✗ Failed or not valid:", remarks)
		var notRun []string
		for _, n := range t.NotRun {
			notRun = append(notRun, n.Cell+": "+n.Why)
		}
		list(&b, "Not run:", notRun)
	}
	line("## Machine and versions\n")
	line("| | |\n|---|---|")
	for _, f := range v.Environment {
		line("| %s | %s |", cell(f.Name), cell(f.Joined()))
	}
	return b.String()
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

// cell is a text that ends no cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
