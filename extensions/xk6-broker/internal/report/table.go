package report

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Table is a table that the terminal and the page show alike.
type Table struct {
	Class   string // of the page's style
	Caption string
	Heads   []string // of the cells
	Rows    []Row
}

// Row is a line of a table.
type Row struct {
	Name  string // for programs that read the page
	Label string
	Doc   string // below the label, on the page only
	Link  string // to a part of the page
	Part  bool   // of the row above
	Cells []Cell
}

// Cell is a value of a row. Its sign is explained by its title.
type Cell struct {
	Text  string
	Value string // the exact number, for programs that read the page
	Sign  string
	Title string
	Class string // of the page's style
}

// count is the cell of a count; with bad, of one that is 0 if all is well.
func count[N int64 | uint64](n N, bad bool) Cell {
	c := Cell{Text: fmt.Sprint(n), Value: fmt.Sprint(n)}
	if bad && n > 0 {
		c.Class = "bad"
	}
	return c
}

// Words is the cell of a text.
func Words(text string) Cell { return Cell{Text: text, Class: "text"} }

// Unknown is the cell of a value that is not known.
func Unknown(why string) Cell { return Cell{Sign: "–", Title: why, Class: "none"} }

// String is the cell as it is shown.
func (c Cell) String() string { return c.Text + c.Sign }

// Head is the head of a column; "" without one.
func (t Table) Head(i int) string {
	if i < len(t.Heads) {
		return t.Heads[i]
	}
	return ""
}

// compact returns the table without the columns in which no row has a value.
func (t Table) compact() Table {
	for i := len(t.Heads) - 1; i >= 0; i-- {
		if slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Cells[i].String() != "–" }) {
			continue
		}
		t.Heads = slices.Delete(t.Heads, i, i+1)
		for k := range t.Rows {
			t.Rows[k].Cells = slices.Delete(t.Rows[k].Cells, i, i+1)
		}
	}
	return t
}

// Legend explains the signs of the table, each once.
func (t Table) Legend() (all []string) {
	for _, r := range t.Rows {
		for _, c := range r.Cells {
			text := c.Sign + " " + c.Title
			if c.Sign != "" && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// Write writes the table with aligned columns.
func (t Table) Write(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "\t"+strings.Join(t.Heads, "\t")+"\t") // a strings.Builder has no errors
	for _, r := range t.Rows {
		line := "  " + r.Label + "\t"
		for _, c := range r.Cells {
			line += c.String() + "\t"
		}
		_, _ = fmt.Fprintln(w, line)
	}
	_ = w.Flush()
	t.writeLegend(b)
}

func (t Table) writeLegend(b *strings.Builder) {
	for _, text := range t.Legend() {
		Wrap(b, "  ", text)
	}
}

// WriteLines writes each row as a paragraph: the label, then the cells with their heads.
func (t Table) WriteLines(b *strings.Builder, indent string) {
	for _, r := range t.Rows {
		parts := make([]string, len(r.Cells))
		for i, c := range r.Cells {
			parts[i] = strings.TrimSpace(t.Head(i) + " " + c.String())
		}
		Wrap(b, indent, strings.TrimPrefix(r.Label+": "+strings.Join(parts, ", "), ": "))
	}
	t.writeLegend(b)
}

// lineWidth is the width of a terminal in characters.
const lineWidth = 120

// Wrap writes a paragraph in lines of a terminal's width. The first line begins with the head, the
// others are indented as far.
func Wrap(b *strings.Builder, head, text string) {
	indent := strings.Repeat(" ", len(head))
	if strings.TrimSpace(head) == "" {
		indent += "  "
	}
	line := head
	for _, word := range strings.Fields(strings.ReplaceAll(text, " %", "\x00%")) { // they stay together
		word = strings.ReplaceAll(word, "\x00", " ")
		longer := line + " " + word
		if line == head {
			longer = head + word
		}
		if len([]rune(longer)) > lineWidth && line != head {
			b.WriteString(line + "\n")
			longer = indent + word
		}
		line = longer
	}
	b.WriteString(line + "\n")
}
