package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// shownTrends are the trends of the table of latencies, in its order.
var shownTrends = []recording.Trend{
	recording.ScheduleLag, recording.GeneratorLag,
	recording.PublishLatency, recording.PublishTime, recording.FailedLatency,
	recording.RequestLatency, recording.RequestTime,
	recording.E2ELatency, recording.E2ETime, recording.DeliveryWait,
	recording.SettleTime, recording.RedeliveryTime,
}

// shownQuantiles are the columns of the table of latencies.
var shownQuantiles = []float64{0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999}

// distribution is a row of the table of latencies.
type distribution struct {
	name, label string
	values      *hist.Histogram
	spelt       []result.Percentile
}

// distributionsOf lists the distributions of a topic: each trend and, if there are several, each
// group. A closed loop beside an open one has its own.
func distributionsOf(t *result.Topic) (all []distribution) {
	add := func(name, label string, h *hist.Histogram, spelt []result.Percentile) {
		if h != nil {
			all = append(all, distribution{name, label, h, spelt})
		}
	}
	for _, trend := range shownTrends {
		name, text := trend.String(), trend.Label()
		if trend == recording.GeneratorLag {
			text = partPrefix + text
		}
		add(name, loopLabel(text, t.OpenLoop), t.Trends[name], t.Percentiles[name])
		for _, g := range t.Groups {
			if len(t.Groups) > 1 && (trend == recording.E2ELatency || trend == recording.DeliveryWait) {
				add(name+" "+g.Group, partPrefix+groupName(g), g.Trends[name], g.Percentiles[name])
			}
		}
		closed := trend.In(recording.Closed)
		add(closed, loopLabel(text, false), t.Trends[closed], t.Percentiles[closed])
	}
	return all
}

// partPrefix begins the label of a row that is a part of the row above.
const partPrefix = "of which "

// groupName returns the name of the consumers that share an account.
func groupName(g result.Group) string {
	switch {
	case g.Subscribers > 0:
		return fmt.Sprintf("%d subscribers", g.Subscribers)
	case g.Group == "":
		return "consumers"
	}
	return "group " + g.Group
}

// loopLabel marks a label of a closed loop, in which a message is due when it is sent.
func loopLabel(text string, open bool) string {
	switch {
	case open:
		return text
	case strings.Contains(text, "(due → "):
		return strings.Replace(text, "(due → ", "(closed loop: sent → ", 1)
	}
	return text + ", closed loop"
}

// latencies is the table of a topic's distributions.
func latencies(t *result.Topic) Table { return percentiles("latencies", distributionsOf(t)) }

// percentiles is a table of distributions.
func percentiles(class string, all []distribution) Table {
	table := Table{Class: class, Heads: []string{"count"}}
	for _, q := range shownQuantiles {
		table.Heads = append(table.Heads, verdict.QuantileName(q))
	}
	table.Heads = append(table.Heads, "max")
	for _, d := range all {
		table.Rows = append(table.Rows, d.row())
	}
	return table.compact()
}

func (d distribution) row() Row {
	r := Row{Name: d.name, Label: d.label, Part: strings.HasPrefix(d.label, partPrefix)}
	if d.values.Max() == hist.Highest {
		r.Doc = "values of more than an hour count as an hour"
	}
	r.Cells = append(r.Cells, count(d.values.Count(), false))
	for _, q := range shownQuantiles {
		r.Cells = append(r.Cells, d.percentile(q))
	}
	r.Cells = append(r.Cells, d.maximum())
	return r
}

// percentile is the cell of a quantile.
func (d distribution) percentile(q float64) Cell {
	if d.values == nil || !d.values.Supported(q) {
		return Unknown("fewer than 10 samples lie beyond the percentile")
	}
	c := latency(d.values.Quantile(q))
	i := slices.IndexFunc(d.spelt, func(p result.Percentile) bool { return p.Q == q })
	switch {
	case i < 0:
	case !d.spelt[i].Believed:
		c.doubt()
	case d.spelt[i].Owed > verdict.OwedShare:
		c.Sign, c.Class = "*", "owed"
		c.Title = "more than 10 % of this value is delay of the load generator or its machine"
	}
	return c
}

// maximum is the cell of the greatest value. It lies beyond all percentiles, and is as reliable as
// the least reliable of them.
func (d distribution) maximum() Cell {
	c := latency(d.values.Max())
	if slices.ContainsFunc(d.spelt, func(p result.Percentile) bool { return p.Supported && !p.Believed }) {
		c.doubt()
	}
	return c
}

func latency(ns int64) Cell { return Cell{Text: Duration(ns), Value: fmt.Sprint(ns)} }

func (c *Cell) doubt() {
	c.Sign, c.Class, c.Title = "?", "doubted", "do not rely on this value: a note has the cause"
}

// Duration returns nanoseconds with three significant digits.
func Duration(ns int64) string {
	unit := int64(1)
	for ns/unit >= 1000 {
		unit *= 10
	}
	return time.Duration(ns).Round(time.Duration(unit)).String()
}

// Rate returns a number per second with four digits, or more before the point.
func Rate(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
