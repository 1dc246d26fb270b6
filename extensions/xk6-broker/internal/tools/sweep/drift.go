package sweep

import (
	"fmt"
	"maps"
	"math"
	"slices"

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
	courses := map[string][]float64{}
	longest := 0
	for i, c := range columns {
		if c.Unit == "" {
			continue
		}
		values := repeated(i, rows)
		longest = max(longest, len(values))
		if len(values) >= stationary.Least {
			courses[c.Label()] = values
		}
	}
	if len(courses) == 0 {
		return Drift{Unknown: fmt.Sprintf("it takes %d cells whose settings were repeated to tell whether anything drifted, and there are %d", stationary.Least, longest)}
	}
	var d Drift
	for _, label := range slices.Sorted(maps.Keys(courses)) {
		f, found := stationary.Test(courses[label], drifting/float64(len(courses)))
		if !found {
			continue
		}
		way := "grew"
		if f.By < 0 {
			way = "fell"
		}
		d.Findings = append(d.Findings, fmt.Sprintf("%s %s by %.0f %% over the study (%s)", label, way, 100*math.Abs(f.By), f))
	}
	return d
}

// repeated returns the numbers of a column in the order of time, each as a share of the median of its settings. Settings
// that were not repeated are left out.
func repeated(column int, rows []Row) (shares []float64) {
	same := map[string][]float64{}
	for _, r := range rows {
		if n := r.Numbers[column]; n.Known && n.Value > 0 {
			same[r.Cell.Settings.String()] = append(same[r.Cell.Settings.String()], n.Value)
		}
	}
	for _, r := range rows {
		n, all := r.Numbers[column], same[r.Cell.Settings.String()]
		if n.Known && n.Value > 0 && len(all) > 1 {
			shares = append(shares, n.Value/stationary.Median(all))
		}
	}
	return shares
}
