package cells

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// Column is a measure of each run.
type Column struct {
	measure.Measure
	Phase string // of the run; "" for the one that leads
}

// Number is the median of a column over runs.
type Number struct {
	Value     float64
	Low, High float64
	Missing   string // the reason if there is no value
	Doubt     string // the reason if it is not reliable
}

// Number returns the median over the runs that have a value.
func (c Column) Number(runs ...Outcome) Number {
	n := Number{Missing: "the run has no result"}
	var values []float64
	for _, o := range runs {
		r := o.Result
		if r != nil && c.Phase != "" {
			r = r.During(c.Phase)
		}
		if r == nil {
			n.Missing = fmt.Sprintf("the run has no result, or no phase %q", c.Phase)
			continue
		}
		v, err := c.OfRun(r)
		if err != nil {
			n.Missing = err.Error()
			continue
		}
		low, high := c.DoubtOfRun(r)
		n.Doubt = cmp.Or(n.Doubt, low, high)
		values = append(values, v)
	}
	if len(values) > 0 {
		n.Missing = ""
		n.Value, n.Low, n.High = stationary.Median(values), slices.Min(values), slices.Max(values)
	}
	return n
}

// Show returns the number as a text, with the range of several.
func (c Column) Show(n Number) Text {
	if n.Missing != "" {
		return Text{Text: "–", Title: n.Missing}
	}
	t := Text{Text: c.Measure.Show(n.Value), Raw: strconv.FormatFloat(n.Value, 'f', -1, 64), Title: n.Doubt}
	if n.Low != n.High {
		t.Text += fmt.Sprintf(" (%s to %s)", c.Measure.Show(n.Low), c.Measure.Show(n.High))
	}
	if n.Doubt != "" {
		t.Text += "?"
	}
	return t
}

// Chart returns a chart of a column; false if there is nothing to draw. Place returns the tick and
// the line of a run.
func (c Column) Chart(label string, runs []Outcome, place func(Outcome) (tick, line string)) (report.Chart, bool) {
	chart := report.Chart{
		ID: "chart-" + report.Sanitise(c.Label()), Title: c.Label(), Axis: "setting", Label: label,
		Unit: c.Unit, Apart: true,
		Note: "The median of the repetitions; the bars run from the least to the greatest.",
	}
	type point struct{ tick, line string }
	points := map[point][]Outcome{}
	var lines []string
	for _, o := range runs {
		tick, line := place(o)
		points[point{tick, line}] = append(points[point{tick, line}], o)
		chart.Ticks = append(chart.Ticks, tick)
		lines = append(lines, line)
	}
	chart.Ticks, lines = distinct(chart.Ticks), distinct(lines)
	if len(chart.Ticks) < 2 || len(lines) > report.Palette || c.Unit == "" || c.Number(runs...).Missing != "" {
		return chart, false
	}
	scale := 1.0
	if c.Unit == "ns" {
		chart.Unit, chart.Log, scale = "ms", true, 1e-6
	}
	for i := range chart.Ticks {
		chart.X = append(chart.X, float64(i))
	}
	for i, name := range lines {
		line := report.Line{Label: name, Colour: i}
		for _, tick := range chart.Ticks {
			var median, low, high *float64
			if n := c.Number(points[point{tick, name}]...); n.Missing == "" {
				middle, least, most := n.Value*scale, n.Low*scale, n.High*scale
				median, low, high = &middle, &least, &most
			}
			line.Values = append(line.Values, median)
			line.Low = append(line.Low, low)
			line.High = append(line.High, high)
		}
		chart.Lines = append(chart.Lines, line)
	}
	return chart, true
}

// distinct sorts texts, by their numbers if they are numbers, and keeps each once.
func distinct(texts []string) []string {
	slices.SortFunc(texts, func(a, b string) int {
		x, err := strconv.ParseFloat(a, 64)
		y, other := strconv.ParseFloat(b, 64)
		if err == nil && other == nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a, b)
	})
	return slices.Compact(texts)
}
