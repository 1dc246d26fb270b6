package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Condition is what makes a comparison fail, such as "e2e_latency p99 > 1.1x".
type Condition struct {
	Text    string
	measure measure.Measure
	op      string
	limit   float64 // ns, a number or, where relative, a multiple of the first side
	ratio   bool
}

const usage = `write "<measure> <op> <limit>", such as "e2e_latency p99 > 1.1x", "confirmed rate < 900" or "lost > 0"; op is >, >=, < or <=; ` +
	`the limit is a multiple of the first side such as 1.1x, a duration such as 50ms or a number`

// ParseCondition understands an expression.
func ParseCondition(text string) (Condition, error) {
	c, err := parse(text)
	if err != nil {
		return c, fmt.Errorf("fail-if %q: %w; %s", text, err, usage)
	}
	return c, nil
}

func parse(text string) (Condition, error) {
	c := Condition{Text: text}
	m, op, limit, err := measure.Split(text)
	if err != nil {
		return c, err
	}
	if !slices.Contains([]string{">", ">=", "<", "<="}, op) {
		return c, fmt.Errorf("%s is not one of >, >=, <, <=", op)
	}
	c.measure, c.op = m, op
	return c, c.parseLimit(limit)
}

func (c *Condition) parseLimit(text string) (err error) {
	if multiple, ok := strings.CutSuffix(text, "x"); ok {
		v, err := strconv.ParseFloat(multiple, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("%q is no multiple", text)
		}
		c.limit, c.ratio = v, true
		return nil
	}
	if c.limit, err = c.measure.ParseLimit(text); err != nil {
		return fmt.Errorf("%w and no multiple", err)
	}
	return nil
}

// Relative reports whether the condition needs another side to compare with.
func (c Condition) Relative() bool { return c.ratio }

// Judge tries a condition that is not relative on every topic of one result. What cannot be decided fails.
func (c Condition) Judge(r *result.Result) []Finding {
	if len(r.Topics) == 0 {
		return []Finding{{c, true, "cannot be decided: nothing was measured"}}
	}
	var all []Finding
	for i := range r.Topics {
		t := &r.Topics[i]
		failed, why := c.decide(rowOf(c.measure, pairing{t.Topic, [][]*result.Topic{{t}}}), 0)
		all = append(all, Finding{c, failed, t.Topic + ": " + why})
	}
	return all
}

// Finding is what a condition found on one side.
type Finding struct {
	Condition Condition
	Failed    bool
	Text      string
}

// Decide tries a condition on every topic and every side but the first. What cannot be decided fails, as on a topic that a side has no more;
// on one that only the first side has not, an absolute limit can be.
func (c *Comparison) Decide(cond Condition) []Finding {
	var all []Finding
	for _, t := range c.Topics {
		row := rowOf(cond.measure, t.pairs)
		for i := 1; i < len(row.Cells); i++ {
			failed, why := cond.decide(row, i)
			all = append(all, Finding{cond, failed, fmt.Sprintf("%s, %s: %s", t.Name, c.Sides[i].Name, why)})
		}
	}
	for _, p := range c.partly {
		row := rowOf(cond.measure, p)
		for i := 1; i < len(p.topics); i++ {
			if len(p.topics[i]) == 0 && len(p.topics[0]) == 0 { // it is another side's
				continue
			}
			failed := true
			var why string
			switch {
			case len(p.topics[i]) < len(c.Sides[i].Runs):
				why = "cannot be decided: the topic is not in " + someOf(c.Sides[i])
			case cond.ratio && len(p.topics[0]) < len(c.Sides[0].Runs):
				why = "cannot be decided: on the first side the topic is not in " + someOf(c.Sides[0])
			default:
				failed, why = cond.decide(row, i)
			}
			all = append(all, Finding{cond, failed, fmt.Sprintf("%s, %s: %s", p.name, c.Sides[i].Name, why)})
		}
	}
	return all
}

// someOf ends what is not in some run of a side.
func someOf(s Side) string {
	if len(s.Runs) == 1 {
		return "its run"
	}
	return "all of its runs"
}

// Invalid finds the runs that are not valid, and why: conditions on their numbers decide nothing.
func (c *Comparison) Invalid() []Finding {
	var all []Finding
	for _, s := range c.Sides {
		for i, r := range s.Runs {
			if !r.Verdict.Valid {
				all = append(all, Finding{
					Condition{Text: "a run is not valid"},
					true,
					fmt.Sprintf("%s: %s (--allow-invalid lets it pass)", runName(s, i), reason.Codes(r.Verdict.Invalid())),
				})
			}
		}
	}
	return all
}

func (c Condition) decide(row Row, i int) (failed bool, why string) {
	first, cell := row.Cells[0], row.Cells[i]
	if cell.Reason != nil {
		return true, "cannot be decided: " + cell.Reason.Error()
	}
	value := cell.Median
	if c.measure.Unit == "" && !c.ratio { // of what should not happen at all, no repetition makes up for another
		value = cell.Low
		if strings.HasPrefix(c.op, ">") {
			value = cell.High
		}
	}
	shown := c.measure.Show(value)
	if c.ratio {
		if first.Reason != nil {
			return true, "cannot be decided: on the first side " + first.Reason.Error()
		}
		if math.IsNaN(cell.Ratio) {
			return true, fmt.Sprintf("cannot be decided: %s has no multiple of %s", shown, c.measure.Show(first.Median))
		}
		value = cell.Ratio
		shown = fmt.Sprintf("%.3gx (%s, was %s)", value, shown, c.measure.Show(first.Median))
	}
	noise := c.ratio && (cell.Significance == Noise || cell.Significance == Same)
	if !measure.Holds(value, c.op, c.limit) || noise {
		if doubt := c.doubt(first, cell); doubt != "" {
			return true, fmt.Sprintf("cannot be decided: %s, but %s", shown, doubt)
		}
	}
	switch {
	case !measure.Holds(value, c.op, c.limit):
		return false, shown
	case noise:
		return false, fmt.Sprintf("%s, but that is within noise (p=%.3f)", shown, cell.P)
	case !c.ratio:
		return true, shown
	case cell.Significance == Unknown:
		return true, fmt.Sprintf("%s; whether it is noise cannot be known: it takes %d repetitions of each", shown, enough)
	}
	return true, fmt.Sprintf("%s (p=%.3f)", shown, cell.P)
}

// doubt says what might make a condition hold that does not: that the value is truly greater than measured or, where less would be worse, less.
// A multiple is truly greater where that on the first side is less.
func (c Condition) doubt(first, cell Cell) string {
	here, there := cell.tooLow, first.tooHigh
	if strings.HasPrefix(c.op, "<") {
		here, there = cell.tooHigh, first.tooLow
	}
	if here == "" && c.ratio && there != "" {
		return "on the first side " + there
	}
	return here
}
