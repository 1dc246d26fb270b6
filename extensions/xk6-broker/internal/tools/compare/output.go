package compare

import (
	_ "embed" // the page's content
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// Text writes the comparison as tables.
func (c *Comparison) Text(w io.Writer) error {
	var b strings.Builder
	write := func(title string, t report.Table) {
		if len(t.Rows) > 0 {
			b.WriteString("\n  " + title + "\n\n")
			t.Write(&b)
		}
	}
	write("the tests differ", c.Tested)
	for _, t := range c.Topics {
		write("topic "+t.Name, t.Table)
	}
	write("the circumstances differ", c.Circumstances)
	for _, warning := range c.Warnings {
		b.WriteString("\n  warning: " + warning)
	}
	b.WriteString("\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("comparison: %w", err)
	}
	return nil
}

//go:embed compare.html
var content string

var page = report.Template(content)

// view is the content of compare.html.
type view struct {
	*Comparison
	Findings []Finding
	Failed   bool
}

// HTML writes the comparison as one page, with the findings at its top.
func (c *Comparison) HTML(w io.Writer, findings []Finding) error {
	v := view{c, findings, slices.ContainsFunc(findings, func(f Finding) bool { return f.Failed })}
	names := make([]string, len(c.Sides))
	for i, s := range c.Sides {
		names[i] = s.Name
	}
	p := report.Page{Title: strings.Join(names, " and "), Body: v}
	for i, t := range c.Topics {
		if t.complete() {
			p.Charts = append(p.Charts, c.Charts(i)...)
		}
	}
	return p.Render(w, page)
}

// Charts draws the distributions of all sides of a topic, each of all runs together.
func (c *Comparison) Charts(topic int) (all []report.Chart) {
	for _, trend := range []recording.Trend{
		recording.E2ELatency, recording.PublishLatency, recording.RequestLatency, recording.GeneratorLag,
	} {
		var sides []report.Distribution
		for i, topics := range c.Topics[topic].runs {
			sum := &hist.Histogram{}
			for _, t := range topics {
				sum.Merge(t.Trends[trend.String()])
			}
			side := report.Distribution{Label: c.Sides[i].Title(), Values: sum, Colour: i % report.Palette}
			sides = append(sides, side)
		}
		id := fmt.Sprintf("topic%d-%s", topic+1, trend)
		if chart := report.Curves(id, trend.Title()+" by percentile", "", sides); len(chart.Lines) > 0 {
			all = append(all, chart)
		}
	}
	return all
}
