package compare

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Condition is a limit that fails a comparison if it holds, such as "e2e_latency p99 > 1.1x".
type Condition struct {
	measure.Objective
}

// ParseCondition returns the condition of a text.
func ParseCondition(text string) (Condition, error) {
	o, err := measure.ParseObjective(text)
	return Condition{o}, err
}

// Relative reports whether the condition needs another side to compare with.
func (c Condition) Relative() bool { return c.Multiple }

// Finding is the decision of a condition on one side.
type Finding struct {
	Condition Condition
	Failed    bool
	Text      string
}

// Judge decides a condition on every topic of one result.
func (c Condition) Judge(r *result.Result) []Finding {
	sides := []Side{{Runs: []*result.Result{r}}}
	return (&Comparison{Sides: sides, Topics: topicsOf(sides)}).Decide(c)
}

// Decide decides a condition on every topic and every side but the first of several. It fails if it
// cannot be decided, as on a topic that a side no longer has.
func (c *Comparison) Decide(cond Condition) (all []Finding) {
	if len(c.Topics) == 0 {
		return []Finding{{cond, true, "cannot be decided: nothing was measured"}}
	}
	for k := range c.Topics {
		t := &c.Topics[k]
		cells := t.cells(cond.Measure)
		if len(cells) == 1 {
			failed, why := cond.decide(cells[0], cells[0])
			all = append(all, Finding{cond, failed, t.Name + ": " + why})
		}
		for i := 1; i < len(cells); i++ {
			failed, why := cond.decide(cells[0], cells[i])
			all = append(all, Finding{cond, failed, fmt.Sprintf("%s, %s: %s", t.Name, c.Sides[i].Name, why)})
		}
	}
	return all
}

// Invalid finds the runs that are not valid: conditions on their numbers decide nothing.
func (c *Comparison) Invalid() (all []Finding) {
	cond := Condition{measure.Objective{Text: "a run is not valid"}}
	for _, s := range c.Sides {
		for i, r := range s.Runs {
			if !r.Verdict.Valid {
				text := runName(s, i) + ": " + reason.Codes(r.Verdict.Invalid())
				all = append(all, Finding{cond, true, text + " (--allow-invalid lets it pass)"})
			}
		}
	}
	return all
}

// decide decides a condition on one side.
func (c Condition) decide(first, side cell) (failed bool, why string) {
	value := c.value(side)
	shown := c.Measure.Show(value)
	switch {
	case side.Unknown != nil:
		return true, "cannot be decided: " + side.Unknown.Error()
	case c.Multiple && first.Unknown != nil:
		return true, "cannot be decided: on the first side " + first.Unknown.Error()
	case c.Multiple && math.IsNaN(side.ratio):
		return true, fmt.Sprintf("cannot be decided: %s has no multiple of %s", shown, c.Measure.Show(first.Median))
	case c.Multiple:
		value = side.ratio
		shown = fmt.Sprintf("%.3gx (%s, was %s)", value, shown, c.Measure.Show(first.Median))
	}
	noise := c.Multiple && side.noise()
	holds := c.Met(value)
	if doubt := c.doubt(first, side); doubt != "" && (!holds || noise) {
		return true, fmt.Sprintf("cannot be decided: %s, but %s", shown, doubt)
	}
	switch {
	case holds && noise:
		shown += fmt.Sprintf(", but that is within noise (p=%.3f)", side.p)
	case holds && c.Multiple && side.tooFew:
		shown += fmt.Sprintf("; whether it is noise cannot be known: it takes %d runs of each side", enough)
	}
	return holds && !noise, shown
}

// value returns the value of a side: the median, or of a count with a fixed limit the worst run,
// because no repetition makes up for another.
func (c Condition) value(side cell) float64 {
	switch {
	case c.Measure.Unit != "" || c.Multiple:
		return side.Median
	case strings.HasPrefix(c.Op, "<"):
		return side.Low
	}
	return side.High
}

// doubt returns why a condition that does not hold may hold in truth: the value may be greater than
// measured or, for "<", less. A multiple may also be greater because the first side is less.
func (c Condition) doubt(first, side cell) string {
	here, there := side.TooLow, first.TooHigh
	if strings.HasPrefix(c.Op, "<") {
		here, there = side.TooHigh, first.TooLow
	}
	if !c.Multiple || there == "" {
		return here
	}
	return cmp.Or(here, "on the first side "+there)
}
