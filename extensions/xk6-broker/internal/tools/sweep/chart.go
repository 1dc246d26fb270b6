package sweep

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
)

// varied are the axes that have more than one point.
func varied(axes []Axis) []Axis {
	return slices.DeleteFunc(slices.Clone(axes), func(a Axis) bool { return len(a.Points) < 2 })
}

// numbers are the values of an axis where all are, in ascending order; nil where they are not.
func (a Axis) numbers() []float64 {
	var all []float64
	for _, p := range a.Points {
		v, err := strconv.ParseFloat(p[0].Value, 64)
		if err != nil || len(all) > 0 && v <= all[len(all)-1] {
			return nil
		}
		all = append(all, v)
	}
	return all
}

// longestTick is as much of a value as an axis shows.
const longestTick = 24

// tick is a point of an axis in short.
func tick(point Values) string {
	var parts []string
	for _, v := range point {
		parts = append(parts, v.Shown())
	}
	if text := []rune(strings.Join(parts, " · ")); len(text) > longestTick {
		return string(text[:longestTick-1]) + "…"
	}
	return strings.Join(parts, " · ")
}

// curvesOver chooses the axis that curves are drawn over: of those for which there are colours for all lines, one of numbers, and that with the most points.
func curvesOver(axes []Axis) (over Axis, others []Axis, ok bool) {
	most := 0
	for i, a := range axes {
		rest := slices.Delete(slices.Clone(axes), i, i+1)
		points := len(a.Points)
		if a.numbers() != nil {
			points += 1000
		}
		if len(combine(rest)) <= report.Palette && points > most {
			over, others, most, ok = a, rest, points, true
		}
	}
	return over, others, ok
}

// curves draws a column of a group over one axis, with a line for each combination of the others; false where nothing is known of it.
func curves(id string, index int, column measure.Measure, over Axis, others []Axis, entries []Entry) (report.Chart, bool) {
	chart := report.Chart{
		ID: id, Title: column.Label(), Axis: "setting", Label: over.Label(), Unit: column.Unit, X: over.numbers(), Lines: []report.Line{},
		Note: "The median of the repetitions; the bars run from the least to the greatest.",
	}
	scale := 1.0
	if column.Unit == "ns" {
		chart.Unit, chart.Log, scale = "ms", true, 1e-6
	}
	if chart.X == nil {
		chart.Apart = true
		for i := range over.Points {
			chart.X = append(chart.X, float64(i))
		}
	} else if first, last := chart.X[0], chart.X[len(chart.X)-1]; first > 0 && last/first >= 20 {
		chart.Decades = true
	}
	for _, p := range over.Points {
		chart.Ticks = append(chart.Ticks, tick(p))
	}
	known := false
	for i, rest := range combine(others) {
		line := report.Line{Label: rest.String(), Colour: i % report.Palette}
		if len(rest) == 0 {
			line.Label = column.Label()
		}
		there := false
		for _, p := range over.Points {
			var median, low, high *float64
			if e := find(entries, slices.Concat(p, rest)); e != nil && e.Columns[index].Count > 0 {
				s := e.Columns[index]
				a, b, c := s.Median*scale, s.Low*scale, s.High*scale
				median, low, high, there = &a, &b, &c, true
			}
			line.Values, line.Low, line.High = append(line.Values, median), append(line.Low, low), append(line.High, high)
		}
		if there {
			chart.Lines, known = append(chart.Lines, line), true
		}
	}
	return chart, known
}

// find finds the entry that has all of these settings, among others that do not vary.
func find(entries []Entry, settings Values) *Entry {
	i := slices.IndexFunc(entries, func(e Entry) bool {
		return !slices.ContainsFunc(settings, func(v Value) bool { return !slices.Contains(e.Settings, v) })
	})
	if i < 0 {
		return nil
	}
	return &entries[i]
}

// combine is every combination of some axes, the last fastest; one that is empty where there are none.
func combine(axes []Axis) []Values {
	all := []Values{nil}
	for _, a := range axes {
		var more []Values
		for _, have := range all {
			for _, point := range a.Points {
				more = append(more, slices.Concat(have, point))
			}
		}
		all = more
	}
	return all
}

// heat is a column over two axes, as a table in which more has the stronger colour.
type heat struct {
	Title        string
	Down, Across string
	Heads        []string
	Rows         []heatRow
}

type heatRow struct {
	Head  string
	Cells []heatCell
}

type heatCell struct {
	Text, Title string
	Class       string
}

// heatOf draws a column of a group over two axes; false where all that is known is one number.
func heatOf(index int, column measure.Measure, down, across Axis, entries []Entry) (heat, bool) {
	h := heat{Title: column.Label(), Down: down.Label(), Across: across.Label()}
	var all []float64
	for _, e := range entries {
		if s := e.Columns[index]; s.Count > 0 {
			all = append(all, s.Median)
		}
	}
	if len(all) == 0 || slices.Min(all) == slices.Max(all) {
		return h, false
	}
	least, greatest := slices.Min(all), slices.Max(all)
	for _, p := range across.Points {
		h.Heads = append(h.Heads, tick(p))
	}
	for _, d := range down.Points {
		row := heatRow{Head: tick(d)}
		for _, a := range across.Points {
			cell := heatCell{Text: "–"}
			if e := find(entries, slices.Concat(d, a)); e != nil && e.Columns[index].Count > 0 {
				s := e.Columns[index]
				cell = heatCell{Text: column.Show(s.Median) + s.sign(), Title: s.title(column), Class: Shade(least, greatest, s.Median)}
			} else if e != nil {
				cell.Title = e.Columns[index].Why
			}
			row.Cells = append(row.Cells, cell)
		}
		h.Rows = append(h.Rows, row)
	}
	return h, true
}

func (s Spread) sign() string {
	if s.Doubt != "" {
		return "?"
	}
	return ""
}

// text writes the median and, of several repetitions, the least and the greatest, and of how many it is where some do not know it.
func (s Spread) text(m measure.Measure) string {
	if s.Count == 0 {
		return "–"
	}
	text := m.Show(s.Median) + s.sign()
	if s.Low != s.High {
		text += fmt.Sprintf(" (%s…%s)", m.Show(s.Low), m.Show(s.High))
	}
	if s.Count < s.Of {
		text += fmt.Sprintf(" of %d of %d", s.Count, s.Of)
	}
	return text
}

// title says more of a number.
func (s Spread) title(m measure.Measure) string {
	text := s.text(m)
	if s.Doubt != "" {
		text += ": " + s.Doubt
	}
	return text
}
