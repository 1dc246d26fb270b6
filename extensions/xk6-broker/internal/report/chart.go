package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Chart is what the page draws: lines over one axis. The page knows nothing else of a result.
type Chart struct {
	ID    string    `json:"id"`
	Title string    `json:"title"`
	Note  string    `json:"note,omitempty"`
	Axis  string    `json:"axis"` // "percentile": x is 1/(1-p), logarithmic; "seconds": x is time from the start; "setting": x is a setting of a study
	Unit  string    `json:"unit"` // "ms", "/s", "B/s", "%" or "" for plain numbers
	Log   bool      `json:"log"`  // whether the values are drawn on a logarithmic axis at first
	X     []float64 `json:"x"`
	Lines []Line    `json:"lines"`

	Label   string   `json:"label,omitempty"`   // of the axis of a setting
	Ticks   []string `json:"ticks,omitempty"`   // of a setting, the text of each x
	Decades bool     `json:"decades,omitempty"` // the axis of a setting is logarithmic
	Apart   bool     `json:"apart,omitempty"`   // the values of a setting are no numbers: nothing is between them
	Marks   []Mark   `json:"marks,omitempty"`   // of a chart over seconds
}

// Mark is something that happened, which the page draws as a vertical line.
type Mark struct {
	At   float64 `json:"at"` // the same as x
	What string  `json:"what"`
}

// Line is one line of a chart, with a value for each x, nil where nothing can be said.
type Line struct {
	Label  string     `json:"label"`
	Colour int        `json:"colour"` // of the page's palette, which has 8
	Dashed bool       `json:"dashed,omitempty"`
	Band   bool       `json:"band,omitempty"`  // the space down to the line before is filled
	Width  float64    `json:"width,omitempty"` // in pixels; 2 where it is 0
	Values []*float64 `json:"values"`
	Low    []*float64 `json:"low,omitempty"` // of a setting: the least and the greatest of the repetitions, which the page draws as a bar
	High   []*float64 `json:"high,omitempty"`
}

// perDecade is how many points of a percentile curve there are from one nine to the next.
const perDecade = 20

// Distribution is a distribution to draw.
type Distribution struct {
	Label  string
	Values *hist.Histogram
	Colour int
	Dashed bool
}

// Curves draws percentile curves, each as far as its samples support it.
func Curves(id, title, note string, all []Distribution) Chart {
	chart := Chart{ID: id, Title: title, Note: note, Axis: "percentile", Unit: "ms", Log: true, X: []float64{}, Lines: []Line{}}
	var quantiles []float64
	for k := 0; ; k++ {
		x := math.Pow(10, float64(k)/perDecade)
		q := 1 - 1/x
		supported := func(d Distribution) bool { return d.Values.Supported(q) }
		if !slices.ContainsFunc(all, supported) {
			break
		}
		chart.X = append(chart.X, x)
		quantiles = append(quantiles, q)
	}
	for _, d := range all {
		line := Line{Label: d.Label, Colour: d.Colour, Dashed: d.Dashed, Values: make([]*float64, len(quantiles))}
		for i, p := range d.Values.Percentiles(quantiles) {
			if p.Supported {
				line.Values[i] = milliseconds(p.Value)
			}
		}
		chart.Lines = append(chart.Lines, line)
	}
	return chart
}

func milliseconds(ns int64) *float64 {
	ms := float64(ns) / 1e6
	return &ms
}

// overTime draws lines of a topic's history.
func overTime(id, title, unit, note string, history []result.Point) Chart {
	chart := Chart{ID: id, Title: title, Note: note, Axis: "seconds", Unit: unit, X: make([]float64, len(history)), Lines: []Line{}}
	for i, p := range history {
		chart.X[i] = p.At
	}
	if length := recording.Length(history); length > 1 {
		chart.say("Each point is of %s.", duration(length))
	}
	return chart
}

// say adds a sentence to the note.
func (c *Chart) say(format string, args ...any) {
	c.Note = strings.TrimSpace(c.Note + " " + fmt.Sprintf(format, args...))
}

// duration writes a length of whole seconds.
func duration(seconds float64) string {
	if seconds < 60 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return (time.Duration(seconds) * time.Second).String()
}

// line adds a line whose values are read from each point; NaN is no value.
func (c *Chart) line(label string, colour int, history []result.Point, read func(result.Point) float64) {
	line := Line{Label: label, Colour: colour, Values: make([]*float64, len(history))}
	for i, p := range history {
		if v := read(p); !math.IsNaN(v) {
			line.Values[i] = &v
		}
	}
	c.Lines = append(c.Lines, line)
}

// bands are the quantiles over time, each with how many samples an interval needs for it.
var bands = []struct {
	label  string
	enough uint64
	read   func(result.Summary) int64
}{
	{"p50", 20, func(s result.Summary) int64 { return s.P50 }},
	{"p90", 100, func(s result.Summary) int64 { return s.P90 }},
	{"p99", 1000, func(s result.Summary) int64 { return s.P99 }},
	{"p99.9", 10_000, func(s result.Summary) int64 { return s.P999 }},
	{"max", 1, func(s result.Summary) int64 { return s.Max }},
}

// quantilesOverTime draws the quantiles of a trend, with the space between them filled.
func quantilesOverTime(id, title, note string, summaries []result.Summary) Chart {
	chart := Chart{ID: id, Title: title, Note: note, Axis: "seconds", Unit: "ms", Log: true, X: make([]float64, len(summaries)), Lines: []Line{}}
	for i, s := range summaries {
		chart.X[i] = s.At
	}
	for i, b := range bands {
		line := Line{Label: b.label, Colour: i, Band: i > 0, Values: make([]*float64, len(summaries))}
		for n, s := range summaries {
			if s.Count >= b.enough {
				line.Values[n] = milliseconds(b.read(s))
			}
		}
		if !line.empty() {
			chart.Lines = append(chart.Lines, line)
		}
	}
	if len(summaries) > 0 {
		chart.say("Percentiles are over %s each.", duration(recording.Length(summaries)))
	}
	return chart
}

func (l Line) empty() bool {
	return !slices.ContainsFunc(l.Values, func(v *float64) bool { return v != nil })
}

// mark draws what the script said had happened into a chart over time.
func (c *Chart) mark(all []result.Annotation) {
	if c.Axis != "seconds" {
		return
	}
	for _, a := range all {
		c.Marks = append(c.Marks, Mark(a))
	}
}
