package studies

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
	line("Published: [%s](%s)%s\n", v.Source.Citation, v.Source.URL, after(". ", v.Original))
	line("    %s\n", v.Command)
	if v.Said != "" {
		line("With, of the environment: `%s`\n", v.Said)
	}
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
			for _, grid := range g.Grids {
				line("%s, %s:\n", grid.Title.Title, grid.Title.Of)
				rows := [][]string{append([]string{grid.Corner}, grid.Columns...)}
				for _, row := range grid.Rows {
					cells := []string{row.Name}
					for _, c := range row.Cells {
						cells = append(cells, strings.TrimSpace(c.Text+" "+c.Mark))
					}
					rows = append(rows, cells)
				}
				table(&b, rows)
			}
			if g.Grids != nil {
				continue
			}
			rows := [][]string{{""}}
			for _, h := range t.Headers {
				rows[0] = append(rows[0], h.Title+", "+h.Of)
			}
			for _, row := range g.Rows {
				cells := []string{strings.TrimSpace(row.Name + " " + row.Mark)}
				for _, c := range row.Cells {
					cells = append(cells, c.Text)
				}
				rows = append(rows, cells)
			}
			table(&b, rows)
		}
		list(&b, "Drift was seen: runs of the same cell gave other numbers as time went by.", t.Drift)
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

// after is a text behind what stands before it; nothing where there is none.
func after(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
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

// table writes rows, the first of which are titles.
func table(b *strings.Builder, rows [][]string) {
	for i, row := range rows {
		for _, text := range row {
			b.WriteString("| " + cell(text) + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("---:|", len(row)-1) + "\n")
		}
	}
	b.WriteString("\n")
}

// cell is a text that ends no cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
