package report

import (
	"math"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Palette is the number of the page's colours.
const Palette = 8

// Chart is lines over one axis, as the page draws them.
type Chart struct {
	ID    string    `json:"id"`
	Title string    `json:"title"`
	Note  string    `json:"note,omitempty"`
	Axis  string    `json:"axis"` // "percentile": x is 1/(1-p), logarithmic; "seconds": from the start; "setting"
	Unit  string    `json:"unit"` // "ms", "/s", "B/s", "%" or "" for plain numbers
	Log   bool      `json:"log"`  // whether the values are drawn on a logarithmic axis at first
	X     []float64 `json:"x"`
	Lines []Line    `json:"lines"`

	Label   string   `json:"label,omitempty"`   // of the axis of a setting
	Ticks   []string `json:"ticks,omitempty"`   // of a setting, the text of each x
	Decades bool     `json:"decades,omitempty"` // the axis of a setting is logarithmic
	Apart   bool     `json:"apart,omitempty"`   // the values of a setting are names: nothing is between them
}

// Line is one line of a chart, with a value for each x, nil if it is not known.
type Line struct {
	Label  string     `json:"label"`
	Colour int        `json:"colour"` // of the page's palette
	Dashed bool       `json:"dashed,omitempty"`
	Values []*float64 `json:"values"`
	Low    []*float64 `json:"low,omitempty"` // of a setting: the least and the greatest of the repetitions
	High   []*float64 `json:"high,omitempty"`
}

// Distribution is a distribution to draw.
type Distribution struct {
	Label  string
	Values *hist.Histogram
	Colour int
	Dashed bool
}

// Curves draws percentile curves, each as far as its samples support it, without the empty ones.
func Curves(id, title, note string, all []Distribution) Chart {
	const perDecade = 20 // points from one nine to the next
	note = strings.TrimSpace(note + " Each line ends where fewer than 10 samples lie beyond it.")
	chart := Chart{ID: id, Title: title, Note: note, Axis: "percentile", Unit: "ms", Log: true}
	chart.X, chart.Lines = []float64{}, []Line{}
	all = slices.DeleteFunc(all, func(d Distribution) bool { return d.Values == nil || d.Values.Count() == 0 })
	var quantiles []float64
	for k := 0; ; k++ {
		x := math.Pow(10, float64(k)/perDecade)
		q := 1 - 1/x
		if !slices.ContainsFunc(all, func(d Distribution) bool { return d.Values.Supported(q) }) {
			break
		}
		chart.X, quantiles = append(chart.X, x), append(quantiles, q)
	}
	for _, d := range all {
		line := Line{Label: d.Label, Colour: d.Colour, Dashed: d.Dashed, Values: make([]*float64, len(quantiles))}
		for i, p := range d.Values.Percentiles(quantiles) {
			if p.Supported {
				ms := float64(p.Value) / 1e6
				line.Values[i] = &ms
			}
		}
		chart.Lines = append(chart.Lines, line)
	}
	return chart
}

// curveTrends are the trends of the percentile curves. A latency, from due, is solid. A time, from
// sent, has the colour of its latency and is dashed.
var curveTrends = []struct {
	trend  recording.Trend
	colour int
	dashed bool
}{
	{recording.PublishLatency, 0, false},
	{recording.PublishTime, 0, true},
	{recording.E2ELatency, 1, false},
	{recording.E2ETime, 1, true},
	{recording.DeliveryWait, 4, true},
	{recording.RequestLatency, 2, false},
	{recording.RequestTime, 2, true},
	{recording.FailedLatency, 3, false},
}

// curves draws the latencies of a topic, and if there are several groups the end-to-end latency of each.
func curves(id string, t *result.Topic) Chart {
	var all []Distribution
	for _, c := range curveTrends {
		text, closed := c.trend.Label(), c.trend.In(recording.Closed)
		all = append(all,
			Distribution{loopLabel(text, t.OpenLoop), t.Trends[c.trend.String()], c.colour, c.dashed},
			Distribution{loopLabel(text, false), t.Trends[closed], (c.colour + 5) % Palette, c.dashed})
	}
	for i, g := range t.Groups {
		if len(t.Groups) > 1 {
			all = append(all, Distribution{groupName(g), g.Trends[recording.E2ELatency.String()], i % Palette, false})
		}
	}
	note := "Solid: from when a message was due. Dashed: from when it was sent, which hides the waiting before."
	return Curves(id, "Latency by percentile", note, all)
}
