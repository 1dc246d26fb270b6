package study

import (
	"fmt"
	"math"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/stationary"
)

// drifting is how many of a hundred studies in which nothing drifts, at most, are said to have drifted.
const drifting = 0.01

// Drift is what can be said of whether the system, or the machine, became another one while the study went on.
type Drift struct {
	Findings []string // what drifted, a sentence each
	Unknown  string   // why it cannot be known; "" where it can
}

// DriftOf tests whether cells of the same settings gave other numbers as time went by. Of each number there is left what it is of the mean of its
// settings, and these, in the order of time, are tested for a trend and for a change.
func DriftOf(columns []measure.Measure, rows []Row) Drift {
	type course struct {
		label  string
		values []float64
	}
	var courses []course
	longest := 0
	for i, c := range columns {
		if c.Unit == "" {
			continue
		}
		rest := residuals(i, rows)
		longest = max(longest, len(rest))
		if len(rest) >= stationary.Least {
			courses = append(courses, course{c.Label(), rest})
		}
	}
	if len(courses) == 0 {
		return Drift{Unknown: fmt.Sprintf("it takes %d cells whose settings were repeated to tell whether anything drifted, and there are %d", stationary.Least, longest)}
	}
	var d Drift
	for _, c := range courses {
		f, found := stationary.TestLog(c.values, drifting/float64(len(courses)))
		if !found {
			continue
		}
		way := "grew"
		if f.By < 0 {
			way = "fell"
		}
		how := "over the study (Mann-Kendall test"
		if f.Kind == stationary.Change {
			how = fmt.Sprintf("at the %s of %d cells, and stayed so (Pettitt's test", ordinal(f.At+1), len(c.values))
		}
		d.Findings = append(d.Findings, fmt.Sprintf("%s %s by %.0f %% %s, p=%.2g)", c.label, way, 100*math.Abs(f.By), how, f.P))
	}
	return d
}

// residuals are the logarithms of the numbers of a column in the order of time, without the mean of those of the same settings: what drifts does so by a
// percentage of them all. Settings that were not repeated say nothing.
func residuals(column int, rows []Row) (rest []float64) {
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, r := range rows {
		if n := r.Numbers[column]; n.Known && n.Value > 0 {
			sums[r.Cell.Settings.String()] += math.Log(n.Value)
			counts[r.Cell.Settings.String()]++
		}
	}
	for _, r := range rows {
		of := r.Cell.Settings.String()
		if n := r.Numbers[column]; n.Known && n.Value > 0 && counts[of] > 1 {
			rest = append(rest, math.Log(n.Value)-sums[of]/counts[of])
		}
	}
	return rest
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n/10%10 == 1:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprint(n) + suffix
}
