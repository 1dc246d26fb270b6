package report

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// lined are the latencies of a topic's line, each with its percentiles.
var lined = []struct {
	trend recording.Trend
	label string
}{{recording.PublishLatency, "publish"}, {recording.RequestLatency, "request"}, {recording.E2ELatency, "e2e"}}

// linedQuantiles are the percentiles of a topic's line.
var linedQuantiles = []float64{0.5, 0.99}

// line is a topic among many.
type line struct {
	Topic                     string
	Sent, Confirmed, Received int64
	Lost                      uint64
	Observed                  bool // whether anybody was expected to receive, so that loss is known
	Errors                    int64
	Cells                     []cell
}

// linesOf gives each topic a line, and the latencies' columns.
func linesOf(r *result.Result) (columns []string, lines []line) {
	brokers := map[string]bool{}
	for _, t := range r.Topics {
		brokers[t.Broker] = true
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		l := line{
			Topic: t.Topic, Sent: t.Counts[recording.Sent.String()], Confirmed: t.Counts[recording.Confirmed.String()], Received: t.Counts[recording.Received.String()],
			Observed: slices.ContainsFunc(t.Groups, func(g result.Group) bool { return g.Expected > 0 }),
		}
		if len(brokers) > 1 {
			l.Topic += " on " + t.Broker
		}
		for _, g := range t.Groups {
			l.Lost += g.Lost
		}
		for _, e := range t.Errors {
			l.Errors += e.Count
		}
		lines = append(lines, l)
	}
	for _, c := range lined {
		name := c.trend.String()
		if !slices.ContainsFunc(r.Topics, func(t result.Topic) bool { return t.Trends[name] != nil }) {
			continue
		}
		for _, q := range linedQuantiles {
			columns = append(columns, c.label+" "+verdict.QuantileName(q))
			for i := range r.Topics {
				t, one := &r.Topics[i], cell{}
				if h := t.Trends[name]; h != nil {
					one = (&row{Values: h, spelt: t.Percentiles[name]}).cell(q)
				}
				lines[i].Cells = append(lines[i].Cells, one)
			}
		}
	}
	return columns, lines
}

// total writes all topics together, and a line for each.
func total(b *strings.Builder, r *result.Result) {
	all := verdict.Total(r)
	fmt.Fprintf(b, "\n  all %d topics together, on %s\n\n", len(r.Topics), strings.Join(brokersOf(r), ", "))
	leading := r.Led()
	during := verdict.Total(leading)
	led(b, r, &during)
	latencies(b, &all)
	b.WriteString("\n")
	counts(b, &all)
	groups(b, &all)
	b.WriteString("\n")
	if r.Leading != "" {
		fmt.Fprintf(b, "  each in the phase %s; lost is of the whole run\n", r.Leading)
	}
	columns, lines := linesOf(leading)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	wide := len("topic")
	for _, l := range lines {
		wide = max(wide, len([]rune(l.Topic)))
	}
	fmt.Fprintf(table, "  %-*s\tsent\tconfirmed\treceived\tlost\terrors\t", wide, "topic")
	for _, c := range columns {
		fmt.Fprintf(table, "%s\t", c)
	}
	fmt.Fprintln(table)
	for _, l := range lines {
		lost := "-"
		if l.Observed {
			lost = fmt.Sprint(l.Lost)
		}
		fmt.Fprintf(table, "  %-*s\t%d\t%d\t%d\t%s\t%d\t", wide, l.Topic, l.Sent, l.Confirmed, l.Received, lost, l.Errors)
		for _, c := range l.Cells {
			fmt.Fprintf(table, "%s\t", c)
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // a strings.Builder takes all that is written
	if slices.ContainsFunc(lines, func(l line) bool { return !l.Observed && l.Sent+l.Received > 0 }) {
		b.WriteString("  lost -: nothing was received, or nothing was expected, so loss could not be observed\n")
	}
	b.WriteString("  report.html has the details of each\n")
}

// brokersOf names the brokers of a result.
func brokersOf(r *result.Result) []string {
	var all []string
	for _, t := range r.Topics {
		name := fmt.Sprintf("%s (%s)", t.Broker, t.Driver)
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
