package cells

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// Column is a measure of each run.
type Column struct {
	Title    string
	Measured string // the name of the measure
	Phase    string // of the run; "" for the one that leads
	Ratio    *bool  // whether a study shows the multiple of its base; nil is true

	measure.Measure `json:"-"` // set by Parse
}

var errNoRun = errors.New("no run is valid")

// Parse parses the columns of measures by name.
func Parse(names []string) (columns []*Column, err error) {
	for _, name := range names {
		m, err := measure.Parse(name)
		if err != nil {
			return nil, err
		}
		columns = append(columns, &Column{Title: m.Label(), Measured: name, Measure: m})
	}
	return columns, nil
}

// Spread reads the measure of runs.
func (c *Column) Spread(runs ...Outcome) measure.Spread {
	var results []*result.Result
	for _, o := range runs {
		r := o.Result
		if r != nil && c.Phase != "" {
			r = r.During(c.Phase)
		}
		results = append(results, r)
	}
	return c.SpreadOfRuns(results)
}

// Show returns the text of runs. A question mark is a value that is not reliable.
func (c *Column) Show(s measure.Spread) Text {
	if len(s.Values) == 0 {
		return Text{Text: "–", Title: fmt.Sprint(cmp.Or(s.Unknown, errNoRun))}
	}
	t := Text{Text: c.ShowSpread(s), Raw: strconv.FormatFloat(s.Median, 'f', -1, 64)}
	if t.Title = cmp.Or(s.TooLow, s.TooHigh); t.Title != "" {
		t.Text += "?"
	}
	return t
}

// Chart returns a chart of a column, without lines if there is nothing to draw. Place returns the
// tick and the line of a run.
func (c *Column) Chart(label string, runs []Outcome, place func(Outcome) (tick, line string)) report.Chart {
	chart := report.Chart{
		ID: "chart-" + report.Sanitise(c.Title), Title: c.Title, Axis: "setting", Label: label, Unit: c.Unit, Apart: true,
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
	if len(chart.Ticks) < 2 || len(lines) > report.Palette || c.Unit == "" || len(c.Spread(runs...).Values) == 0 {
		return chart
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
			var at [3]*float64
			if s := c.Spread(points[point{tick, name}]...); len(s.Values) > 0 {
				for k, v := range []float64{s.Median, s.Low, s.High} {
					at[k] = new(v * scale)
				}
			}
			line.Values, line.Low, line.High = append(line.Values, at[0]), append(line.Low, at[1]), append(line.High, at[2])
		}
		chart.Lines = append(chart.Lines, line)
	}
	return chart
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
