package cells

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// Chart returns a chart of a column; false if there is nothing to draw. Place returns the tick and the line of a run.
func (c Column) Chart(label string, runs []Outcome, place func(Outcome) (tick, line string)) (report.Chart, bool) {
	chart := report.Chart{
		ID: "chart-" + report.Sanitise(c.Label()), Title: c.Label(), Axis: "setting", Label: label, Unit: c.Unit, Apart: true,
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
	if len(chart.Ticks) < 2 || len(lines) > report.Palette || c.Unit == "" {
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
