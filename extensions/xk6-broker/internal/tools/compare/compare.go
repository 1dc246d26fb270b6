package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// A difference is more than noise if the Mann-Whitney U test gives less than level. The exact test
// cannot with fewer runs than enough of each side: 3 and 3 give 0.1 at best.
const (
	enough = 4
	level  = 0.05
)

// Comparison is several sides, measured against the first.
type Comparison struct {
	Sides         []Side
	Topics        []Topic
	Tested        report.Table // the options that differ
	Circumstances report.Table // the versions and machines that differ
	Warnings      []string
}

// Topic is a topic of all sides. It has a table if all runs have the topic.
type Topic struct {
	Name  string
	Table report.Table
	runs  [][]*result.Topic // by side; nil if the run does not have it
}

// Compare measures the sides against the first.
func Compare(sides []Side) (*Comparison, error) {
	c := &Comparison{Sides: sides, Topics: topicsOf(sides)}
	c.Tested, c.Circumstances = differences(sides, testFacts), differences(sides, circumstances)
	for _, s := range sides {
		for i, r := range s.Runs {
			if !r.Verdict.Valid {
				c.warn("%s is not valid: %s", runName(s, i), reason.Codes(r.Verdict.Invalid()))
			}
		}
	}
	paired := false
	for i := range c.Topics {
		if t := &c.Topics[i]; t.complete() {
			t.Table, paired = c.table(t), true
		} else {
			c.warn("topic %s is not in all runs and is left out of the tables", t.Name)
		}
	}
	if !paired {
		return nil, errors.New("compare: there is no topic that all runs have")
	}
	if len(c.Tested.Rows) > 0 {
		c.warn("these are not the same tests: see the differences")
	}
	return c, nil
}

func (c *Comparison) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

func runName(s Side, i int) string {
	if len(s.Runs) == 1 {
		return s.Name
	}
	return fmt.Sprintf("%s, run %d (%s)", s.Name, i+1, s.Runs[i].Name)
}

// cell is a measure on one side.
type cell struct {
	measure.Spread
	ratio  float64 // of the median to that of the first side; NaN if there is none
	p      float64 // of the Mann-Whitney U test against the first side
	tooFew bool    // runs for the test
}

// cells reads a measure on all sides.
func (t *Topic) cells(m measure.Measure) (all []cell) {
	for i, topics := range t.runs {
		c := cell{Spread: m.Spread(topics), ratio: math.NaN(), p: 1}
		if i > 0 {
			c.compareTo(all[0])
		}
		all = append(all, c)
	}
	return all
}

// compareTo compares a cell with that of the first side.
func (c *cell) compareTo(first cell) {
	if len(c.Values) == 0 || len(first.Values) == 0 {
		return
	}
	if c.Median == first.Median {
		c.ratio = 1
	} else if first.Median != 0 {
		c.ratio = c.Median / first.Median
	}
	c.tooFew = min(len(c.Values), len(first.Values)) < enough
	if test, err := stats.MannWhitneyUTest(c.Values, first.Values, stats.LocationDiffers); err == nil {
		c.p = test.P // the error is that all values are equal
	}
}

// noise reports whether the difference is known to be no more than noise.
func (c cell) noise() bool { return !c.tooFew && c.p >= level }

// shownTrends are the latencies of a comparison, the most important first.
var shownTrends = []recording.Trend{
	recording.E2ELatency, recording.PublishLatency, recording.RequestLatency,
	recording.E2ETime, recording.DeliveryWait, recording.PublishTime, recording.RequestTime,
	recording.FailedLatency, recording.SettleTime, recording.RedeliveryTime,
	recording.ScheduleLag, recording.GeneratorLag,
}

// measures are the rows of a comparison: the rates and flaws are behind the first three latencies.
func measures() (all []measure.Measure) {
	for i, trend := range shownTrends {
		for _, stat := range []string{"p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max"} {
			m, _ := measure.Latency(trend.String(), stat) // the names are right
			all = append(all, m)
		}
		if i != 2 {
			continue
		}
		for _, name := range measure.Rates {
			all = append(all, measure.Rate(name))
		}
		for _, name := range measure.Flaws {
			all = append(all, measure.Count(name))
		}
	}
	return all
}

// table is the table of a topic: each side and, behind it, how it differs from the first.
func (c *Comparison) table(topic *Topic) report.Table {
	t := report.Table{Class: "comparison"}
	for i, s := range c.Sides {
		t.Heads = append(t.Heads, s.Title())
		if i > 0 {
			t.Heads = append(t.Heads, "change")
		}
	}
	for _, m := range measures() {
		cells := topic.cells(m)
		if !slices.ContainsFunc(cells, func(c cell) bool { return len(c.Values) > 0 }) {
			continue
		}
		line := report.Row{Name: m.Label(), Label: m.Label()}
		for i, side := range cells {
			line.Cells = append(line.Cells, side.shown(m))
			if i > 0 {
				line.Cells = append(line.Cells, side.change(m, cells[0], len(c.Tested.Rows) == 0))
			}
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

func (c cell) shown(m measure.Measure) report.Cell {
	if len(c.Values) == 0 {
		return report.Unknown(c.Unknown.Error())
	}
	return report.Cell{Text: m.ShowSpread(c.Spread)}
}

// change is the difference from the first side. It is better or worse only between equal tests.
func (c cell) change(m measure.Measure, first cell, equal bool) report.Cell {
	if len(c.Values) == 0 || len(first.Values) == 0 {
		return report.Unknown("one side is not known")
	}
	text := fmt.Sprintf("%+.1f %%", 100*(c.ratio-1))
	if math.IsNaN(c.ratio) {
		text = "from 0"
	}
	switch {
	case c.ratio == 1:
		return report.Cell{Text: "="}
	case c.tooFew:
		title := fmt.Sprintf("whether it is noise is not known: it takes %d runs of each side", enough)
		return report.Cell{Text: text, Sign: " ?", Title: title}
	}
	shown := report.Cell{Text: fmt.Sprintf("%s p=%.3f", text, c.p)}
	switch {
	case c.noise():
		shown.Sign, shown.Title = " ~", fmt.Sprintf("within noise (Mann-Whitney U test, p ≥ %g)", level)
	case equal && (c.Median < first.Median) == (m.Unit == "ns" || m.Unit == ""):
		shown.Class = "good"
	case equal:
		shown.Class = "bad"
	}
	return shown
}
