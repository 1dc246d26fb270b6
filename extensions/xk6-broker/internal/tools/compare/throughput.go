package compare

import (
	"math"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// throughput lays the rates of the sides over one another, second by second from the first message of each run on.
func (c *Comparison) throughput(id string, t Topic) report.Chart {
	chart := report.Chart{
		ID: id, Title: "Confirmed per second", Note: "From the first message of each run on. Of several repetitions, the mean.", Axis: "seconds", Unit: "/s",
		X: []float64{}, Lines: []report.Line{},
	}
	for i, topics := range t.pairs.topics {
		line := report.Line{Label: c.Sides[i].Name + repetitions(c.Sides[i]), Colour: i % report.Palette, Dashed: i > 0, Values: meanRates(topics)}
		chart.Lines = append(chart.Lines, line)
		for len(chart.X) < len(line.Values) {
			chart.X = append(chart.X, float64(len(chart.X)+1))
		}
	}
	for i := range chart.Lines { // each line has a value for each x
		l := &chart.Lines[i]
		l.Values = append(l.Values, make([]*float64, len(chart.X)-len(l.Values))...)
	}
	return chart
}

// meanRates is what was confirmed in the first second of some runs, in the second one, and so on.
func meanRates(topics []*result.Topic) []*float64 {
	var sums []float64
	var runs []int
	for _, t := range topics {
		busy := func(p result.Point) bool { return p.Counts["due"]+p.Counts["confirmed"] > 0 && p.Seconds > 0 }
		first := slices.IndexFunc(t.History, busy)
		if first < 0 {
			continue
		}
		start := t.History[first].At - t.History[first].Seconds
		last := len(t.History) - 1
		for !busy(t.History[last]) {
			last--
		}
		for _, p := range t.History[first : last+1] {
			end := max(1, int(math.Round(p.At-start)))
			for second := max(0, min(end-1, int(math.Round(p.At-p.Seconds-start)))); second < end && p.Seconds > 0; second++ {
				for len(sums) <= second {
					sums, runs = append(sums, 0), append(runs, 0)
				}
				sums[second] += float64(p.Counts["confirmed"]) / p.Seconds
				runs[second]++
			}
		}
	}
	means := make([]*float64, len(sums))
	for i := range sums {
		if runs[i] > 0 {
			mean := sums[i] / float64(runs[i])
			means[i] = &mean
		}
	}
	return means
}
