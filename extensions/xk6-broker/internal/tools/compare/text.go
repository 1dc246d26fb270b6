package compare

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// ShowSide writes what a side measured: the median and, of several repetitions, the least and the greatest.
func (r Row) ShowSide(i int) string {
	c := r.Cells[i]
	switch {
	case len(c.Values) == 0:
		return "–"
	case len(c.Values) == 1 || c.Low == c.High:
		return r.Show(c.Median)
	}
	return fmt.Sprintf("%s (%s…%s)", r.Show(c.Median), r.Show(c.Low), r.Show(c.High))
}

// Change writes how a side differs from the first.
func (r Row) Change(i int) string {
	c := r.Cells[i]
	switch c.Significance {
	case Unknown:
		return c.change() + " ?"
	case Noise:
		return fmt.Sprintf("%s ~ p=%.3f", c.change(), c.P)
	case Differs:
		return fmt.Sprintf("%s p=%.3f", c.change(), c.P)
	case Same:
		return "="
	}
	return "–"
}

// Legend explains the marks of Change.
func (c *Comparison) Legend() string {
	for _, s := range c.Sides {
		if len(s.Runs) < enough {
			return fmt.Sprintf("? : it takes %d repetitions of each side to tell a difference from noise", enough)
		}
	}
	return fmt.Sprintf("~ : within noise; the other differences are significant (Mann-Whitney U test, p < %g)", level)
}

// Text writes the comparison as tables.
func (c *Comparison) Text(w io.Writer) error {
	var b strings.Builder
	b.WriteString("\n")
	for _, h := range c.Headlines() {
		name := ""
		if len(c.Topics) > 1 {
			name = h.Topic + ", "
		}
		report.Wrap(&b, "  ", fmt.Sprintf("%s%s against %s: %s", name, h.Side, c.Sides[0].Name, h))
	}
	c.writeDifferences(&b, Tested, "the tests differ")
	for _, t := range c.Topics {
		fmt.Fprintf(&b, "\n  topic %s\n\n", t.Name)
		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprint(table, "  \t")
		for i, s := range c.Sides {
			fmt.Fprintf(table, "%s%s\t", s.Name, repetitions(s))
			if i > 0 {
				fmt.Fprint(table, "\t")
			}
		}
		fmt.Fprintln(table)
		for _, row := range t.Rows {
			fmt.Fprintf(table, "  %s\t", row.Label())
			for i := range row.Cells {
				fmt.Fprintf(table, "%s\t", row.ShowSide(i))
				if i > 0 {
					fmt.Fprintf(table, "%s\t", row.Change(i))
				}
			}
			fmt.Fprintln(table)
		}
		_ = table.Flush() // a strings.Builder takes all that is written
	}
	fmt.Fprintf(&b, "\n  %s\n", c.Legend())
	c.writeDifferences(&b, Circumstance, "the circumstances differ")
	for _, warning := range c.Warnings {
		fmt.Fprintf(&b, "\n  warning: %s", warning)
	}
	b.WriteString("\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("comparison: %w", err)
	}
	return nil
}

// writeDifferences writes those of a sort, by side.
func (c *Comparison) writeDifferences(b *strings.Builder, sort Sort, title string) {
	all := c.DifferencesOf(sort)
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n  %s\n\n", title)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, d := range all {
		name := d.Name
		if len(c.Topics) > 1 {
			name = strings.TrimSpace(d.Topic + " " + name)
		}
		fmt.Fprintf(table, "    %s", name)
		for _, value := range d.Values {
			fmt.Fprintf(table, "\t%s", clip(value))
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // a strings.Builder takes all that is written
}

// mostValue is how much of a value a terminal shows; the page shows all.
const mostValue = 40

func clip(value string) string {
	if runes := []rune(value); len(runes) > mostValue {
		return string(runes[:mostValue-1]) + "…"
	}
	return value
}

func repetitions(s Side) string {
	if len(s.Runs) == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d runs)", len(s.Runs))
}
