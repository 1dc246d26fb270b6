package sweep

import (
	"fmt"
	"math"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
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
		logs   []float64
		groups []int
	}
	var courses []course
	longest := 0
	for i, c := range columns {
		if c.Unit == "" {
			continue
		}
		logs, groups := repeated(i, rows)
		longest = max(longest, len(logs))
		if len(logs) >= stationary.Least {
			courses = append(courses, course{c.Label(), logs, groups})
		}
	}
	if len(courses) == 0 {
		return Drift{Unknown: fmt.Sprintf("it takes %d cells whose settings were repeated to tell whether anything drifted, and there are %d", stationary.Least, longest)}
	}
	var d Drift
	for _, c := range courses {
		f, found := stationary.TestLog(c.logs, c.groups, drifting/float64(len(courses)))
		if !found {
			continue
		}
		way := "grew"
		if f.By < 0 {
			way = "fell"
		}
		when := "over the study"
		if f.Kind == stationary.Change {
			when = fmt.Sprintf("at the %s of %d cells, and stayed so", ordinal(f.At+1), len(c.logs))
		}
		d.Findings = append(d.Findings, fmt.Sprintf("%s %s by %.0f %% %s (%s)", c.label, way, 100*math.Abs(f.By), when, f.How()))
	}
	return d
}

// repeated are the logarithms of the numbers of a column in the order of time, and of each, of which settings it is: what drifts does so by a percentage of
// them all. Settings that were not repeated say nothing.
func repeated(column int, rows []Row) (logs []float64, groups []int) {
	counts, numbers := map[string]int{}, map[string]int{}
	for _, again := range []bool{false, true} {
		for _, r := range rows {
			of := r.Cell.Settings.String()
			switch n := r.Numbers[column]; {
			case !n.Known || n.Value <= 0:
			case !again:
				counts[of]++
			case counts[of] > 1:
				if _, ok := numbers[of]; !ok {
					numbers[of] = len(numbers)
				}
				logs, groups = append(logs, math.Log(n.Value)), append(groups, numbers[of])
			}
		}
	}
	return logs, groups
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
