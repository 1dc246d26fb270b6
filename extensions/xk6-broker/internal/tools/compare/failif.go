package compare

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Condition is a limit that fails a comparison if it holds, such as "e2e_latency p99 > 1.1x".
type Condition struct {
	measure.Objective
	relative bool // the limit is a multiple of the first side
}

// ParseCondition returns the condition of a text.
func ParseCondition(text string) (Condition, error) {
	c, err := parse(text)
	if err != nil {
		const advice = `write a measure, an operator and a limit, such as "e2e_latency p99 > 1.1x" or "lost > 0"`
		return c, fmt.Errorf("fail-if %q: %w; %s", text, err, advice)
	}
	return c, nil
}

func parse(text string) (c Condition, err error) {
	head, multiple := strings.CutSuffix(text, "x")
	if !multiple {
		c.Objective, err = measure.ParseObjective(text)
		return c, err
	}
	var limit string
	if c.Objective, limit, err = measure.Split(head); err != nil {
		return c, err
	}
	c.Text, c.relative = text, true
	c.Limit, err = strconv.ParseFloat(limit, 64)
	if err != nil || !(c.Limit > 0) || math.IsInf(c.Limit, 0) {
		return c, fmt.Errorf("%q is no multiple", limit+"x")
	}
	return c, nil
}

// Relative reports whether the condition needs another side to compare with.
func (c Condition) Relative() bool { return c.relative }

// Finding is the decision of a condition on one side.
type Finding struct {
	Condition Condition
	Failed    bool
	Text      string
}

// Judge decides a condition on every topic of one result. A condition that cannot be decided fails.
func (c Condition) Judge(r *result.Result) (all []Finding) {
	if len(r.Topics) == 0 {
		return []Finding{{c, true, "cannot be decided: nothing was measured"}}
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		failed, why := c.decide(rowOf(c.Measure, &Topic{runs: [][]*result.Topic{{t}}}), 0)
		all = append(all, Finding{c, failed, t.Topic + ": " + why})
	}
	return all
}

// Decide decides a condition on every topic and every side but the first. It fails if it cannot be
// decided, as on a topic that a side no longer has.
func (c *Comparison) Decide(cond Condition) (all []Finding) {
	for k := range c.Topics {
		t := &c.Topics[k]
		r := rowOf(cond.Measure, t)
		for i := 1; i < len(r.cells); i++ {
			failed, why := cond.decide(r, i)
			all = append(all, Finding{cond, failed, fmt.Sprintf("%s, %s: %s", t.Name, c.Sides[i].Name, why)})
		}
	}
	return all
}

// Invalid finds the runs that are not valid: conditions on their numbers decide nothing.
func (c *Comparison) Invalid() (all []Finding) {
	cond := Condition{Objective: measure.Objective{Text: "a run is not valid"}}
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

// decide decides a condition on one side of a row.
func (c Condition) decide(r row, i int) (failed bool, why string) {
	first, side := r.cells[0], r.cells[i]
	value, shown := c.value(side)
	switch {
	case side.unknown != nil:
		return true, "cannot be decided: " + side.unknown.Error()
	case c.relative && first.unknown != nil:
		return true, "cannot be decided: on the first side " + first.unknown.Error()
	case c.relative && math.IsNaN(side.ratio):
		return true, fmt.Sprintf("cannot be decided: %s has no multiple of %s", shown, c.Measure.Show(first.median))
	case c.relative:
		value = side.ratio
		shown = fmt.Sprintf("%.3gx (%s, was %s)", value, shown, c.Measure.Show(first.median))
	}
	noise := c.relative && side.noise()
	holds := c.Met(value)
	if doubt := c.doubt(first, side); doubt != "" && (!holds || noise) {
		return true, fmt.Sprintf("cannot be decided: %s, but %s", shown, doubt)
	}
	switch {
	case holds && noise:
		shown += fmt.Sprintf(", but that is within noise (p=%.3f)", side.p)
	case holds && c.relative && side.tooFew:
		shown += fmt.Sprintf("; whether it is noise cannot be known: it takes %d runs of each side", enough)
	case holds && c.relative:
		shown += fmt.Sprintf(" (p=%.3f)", side.p)
	}
	return holds && !noise, shown
}

// value returns the value of a side: the median, or of a count with a fixed limit the worst run,
// because no repetition makes up for another.
func (c Condition) value(side cell) (value float64, shown string) {
	switch {
	case c.Measure.Unit != "" || c.relative:
		value = side.median
	case strings.HasPrefix(c.Op, "<"):
		value = side.low
	default:
		value = side.high
	}
	return value, c.Measure.Show(value)
}

// doubt returns why a condition that does not hold may hold in truth: the value may be greater than
// measured or, for "<", less. A multiple may also be greater because the first side is less.
func (c Condition) doubt(first, side cell) string {
	here, there := side.tooLow, first.tooHigh
	if strings.HasPrefix(c.Op, "<") {
		here, there = side.tooHigh, first.tooLow
	}
	if !c.relative || there == "" {
		return here
	}
	return cmp.Or(here, "on the first side "+there)
}
