package compare

import (
	_ "embed" // the page's content
	"fmt"
	"io"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

//go:embed compare.html
var content string

var page = report.Template(content)

// drawn are the trends whose curves are laid over one another.
var drawn = []struct {
	trend recording.Trend
	title string
}{
	{recording.E2ELatency, "End-to-end latency by percentile"},
	{recording.PublishLatency, "Publish latency by percentile"},
	{recording.RequestLatency, "Request latency by percentile"},
	{recording.GeneratorLag, "Generator lag by percentile"},
}

// view is what compare.html shows.
type view struct {
	*Comparison
	Topics        []topicView
	Findings      []Finding
	Failed        bool
	Tested        differences
	Circumstances differences
}

// differences are those of a sort.
type differences struct {
	Sides       []Side
	Several     bool // there are several topics
	Differences []Difference
}

type topicView struct {
	Topic
	Charts []string
}

// HTML writes the comparison as one page. What the conditions found stands at its top.
func (c *Comparison) HTML(w io.Writer, findings []Finding) error {
	v := view{Comparison: c, Findings: findings, Tested: c.differences(Tested), Circumstances: c.differences(Circumstance)}
	for _, f := range findings {
		v.Failed = v.Failed || f.Failed
	}
	names := make([]string, len(c.Sides))
	for i, s := range c.Sides {
		names[i] = s.Name
	}
	p := report.Page{Title: strings.Join(names, " and ")}
	for i, t := range c.Topics {
		tv := topicView{Topic: t}
		for _, d := range drawn {
			chart, ok := c.curves(fmt.Sprintf("topic%d-%s", i+1, d.trend), d.title, t, d.trend.String())
			if ok {
				p.Charts = append(p.Charts, chart)
				tv.Charts = append(tv.Charts, chart.ID)
			}
		}
		chart := c.throughput(fmt.Sprintf("topic%d-throughput", i+1), t)
		p.Charts = append(p.Charts, chart)
		tv.Charts = append(tv.Charts, chart.ID)
		v.Topics = append(v.Topics, tv)
	}
	p.Body = v
	return p.Render(w, page)
}

func (c *Comparison) differences(sort Sort) differences {
	return differences{c.Sides, len(c.Topics) > 1, c.DifferencesOf(sort)}
}

// curves lays the sides over one another: all repetitions of a side together, and dashed each by itself where they are few.
func (c *Comparison) curves(id, title string, t Topic, trend string) (report.Chart, bool) {
	const few = 5
	var all []report.Distribution
	for i, topics := range t.pairs.topics {
		sum := &hist.Histogram{}
		for n, topic := range topics {
			h := topic.Trends[trend]
			sum.Merge(h)
			if h != nil && len(topics) > 1 && len(topics) <= few {
				all = append(all, report.Distribution{
					Label: fmt.Sprintf("%s, run %d", c.Sides[i].Name, n+1), Values: h, Colour: i % report.Palette, Dashed: true,
				})
			}
		}
		if sum.Count() > 0 {
			all = append(all, report.Distribution{Label: c.Sides[i].Name + repetitions(c.Sides[i]), Values: sum, Colour: i % report.Palette})
		}
	}
	note := "Each line ends where fewer than 10 samples lie beyond it."
	if len(all) > len(c.Sides) {
		note = "Solid: all repetitions together. Dashed: each by itself. " + note
	}
	return report.Curves(id, title, note, all), len(all) > 0
}
