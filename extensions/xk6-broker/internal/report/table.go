package report

import (
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// shown are the trends of the table, in its order.
var shown = []recording.Trend{
	recording.ScheduleLag, recording.GeneratorLag, recording.PublishLatency, recording.PublishTime, recording.FailedLatency, recording.RequestLatency, recording.RequestTime,
	recording.E2ELatency, recording.E2ETime, recording.DeliveryWait, recording.SettleTime, recording.RedeliveryTime,
}

// columns are the quantiles of the table. One is printed only where at least 10 samples lie beyond it.
var columns = []struct {
	q    float64
	name string
}{
	{0.5, "p50"}, {0.9, "p90"}, {0.99, "p99"}, {0.999, "p99.9"}, {0.9999, "p99.99"}, {0.99999, "p99.999"}, {0.999999, "p99.9999"},
}

// row is a distribution in the table of a topic, on a terminal and on the page.
type row struct {
	Name     string // of the trend; "" for the part of a group
	Label    string
	Part     bool // of the row above
	Values   *hist.Histogram
	spelt    []result.Percentile
	Cells    []cell
	Max      cell
	Negative uint64
	Overflow uint64
}

// cell is one percentile.
type cell struct {
	Known   bool // its samples support it
	Value   int64
	Owed    bool // more than a tenth of it is lateness of the load generator or its machine
	Doubted bool // not to be relied on
}

// tableOf gives the columns that any row supports, and a row for each trend that has samples; what was sent in a closed loop beside an
// open one has its own, and so has each group where there are several.
func tableOf(t *result.Topic) (names []string, rows []row) {
	add := func(name, label string, h *hist.Histogram, spelt []result.Percentile) {
		if h != nil {
			rows = append(rows, row{Name: name, Label: label, Part: strings.HasPrefix(label, "of which"), Values: h, spelt: spelt, Negative: h.Negative(), Overflow: h.Overflow()})
		}
	}
	for _, trend := range shown {
		name, text := trend.String(), trend.Label()
		if trend == recording.GeneratorLag { // of the row above
			text = "of which " + text
		}
		add(name, label(text, t.OpenLoop), t.Trends[name], t.Percentiles[name])
		if (trend == recording.E2ELatency || trend == recording.DeliveryWait) && len(t.Groups) > 1 {
			for _, g := range t.Groups {
				add("", "of which "+groupName(g), g.Trends[name], g.Percentiles[name])
			}
		}
		if closed := trend.In(recording.Closed); t.Trends[closed] != nil {
			add(closed, ofClosed(text), t.Trends[closed], t.Percentiles[closed])
		}
	}
	most := 0
	for _, r := range rows {
		for i, c := range columns {
			if r.Values.Supported(c.q) {
				most = max(most, i+1)
			}
		}
	}
	for _, c := range columns[:most] {
		names = append(names, c.name)
		for i := range rows {
			rows[i].Cells = append(rows[i].Cells, rows[i].cell(c.q))
		}
	}
	for i := range rows { // the maximum is beyond all percentiles, and no more to be relied on than they are
		doubted := func(p result.Percentile) bool { return p.Supported && !p.Believed }
		rows[i].Max = cell{Known: true, Value: rows[i].Values.Max(), Doubted: slices.ContainsFunc(rows[i].spelt, doubted)}
	}
	return names, rows
}

func (r *row) cell(q float64) cell {
	if !r.Values.Supported(q) {
		return cell{}
	}
	c := cell{Known: true, Value: r.Values.Quantile(q)}
	if i := slices.IndexFunc(r.spelt, func(p result.Percentile) bool { return p.Q == q }); i >= 0 {
		c.Doubted = !r.spelt[i].Believed
		c.Owed = r.spelt[i].Owed > verdict.OwedShare
	}
	return c
}

// What the signs at a value of the table mean.
const (
	owedSign    = "more than 10 % of this value is lateness of the load generator or its machine"
	doubtedSign = "do not rely on this value: see the verdict"
)

// label says of a latency in a closed loop that it is service time.
func label(text string, open bool) string {
	if open {
		return text
	}
	return strings.Replace(text, "(due → ", "(closed loop: sent → ", 1)
}

// ofClosed is the label of what was measured in a closed loop, beside an open one.
func ofClosed(text string) string {
	if as := label(text, false); as != text {
		return as
	}
	return text + ", closed loop"
}
