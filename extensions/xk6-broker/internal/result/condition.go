package result

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Condition is what a threshold asks of a metric, in the grammar of k6: "p(99.9)<50".
type Condition struct {
	Method   string  // what is compared: avg, min, max, med, p, count, rate or value
	Quantile float64 // of the methods p and med, 0 to 1
	Operator string  // <, <=, >, >=, ==, === or !=
	Limit    float64 // with what
}

// operators are in the order in which they are looked for: one that begins with another comes first.
var operators = []string{"<=", "<", ">=", ">", "===", "==", "!="}

// ParseCondition understands the source of a threshold as k6 does, and refuses what k6 refuses.
func ParseCondition(source string) (Condition, error) {
	for _, op := range operators {
		left, right, _ := strings.Cut(source, op)
		if right == "" {
			continue
		}
		limit, err := strconv.ParseFloat(strings.TrimSpace(right), 64)
		if err != nil {
			return Condition{}, fmt.Errorf("threshold %q: %q is not a number", source, strings.TrimSpace(right))
		}
		c := Condition{Operator: op, Limit: limit}
		if err := c.of(strings.TrimSpace(left)); err != nil {
			return Condition{}, fmt.Errorf("threshold %q: %w", source, err)
		}
		return c, nil
	}
	return Condition{}, fmt.Errorf("threshold %q: it compares nothing: known are %s", source, strings.Join(operators, " "))
}

// of takes the method.
func (c *Condition) of(method string) error {
	if slices.Contains([]string{"avg", "min", "max", "med", "count", "rate", "value"}, method) {
		c.Method = method
		if method == "med" {
			c.Quantile = 0.5
		}
		return nil
	}
	if method == "p" { // which k6 takes for p(0)
		c.Method = "min"
		return nil
	}
	text, ok := strings.CutPrefix(method, "p(")
	if !ok || !strings.HasSuffix(text, ")") {
		return fmt.Errorf("%q is not one of avg, min, med, max, p(N), count, rate, value", method)
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, ")"), 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return fmt.Errorf("%q: a percentile is a number from 0 to 100", method)
	}
	// As it is written in decimal, for the rank of a quantile is exact: 99.9/100 is not 0.999 in floating point.
	c.Quantile, _ = strconv.ParseFloat(strconv.FormatFloat(percent, 'f', -1, 64)+"e-2", 64)
	switch c.Method = "p"; c.Quantile {
	case 0:
		c.Method = "min"
	case 1:
		c.Method = "max"
	}
	return nil
}

// Holds tells whether a value fulfils the condition.
func (c Condition) Holds(v float64) bool {
	switch c.Operator {
	case "<":
		return v < c.Limit
	case "<=":
		return v <= c.Limit
	case ">":
		return v > c.Limit
	case ">=":
		return v >= c.Limit
	case "!=":
		return v != c.Limit
	}
	return v == c.Limit
}

// sameBelow tells whether what holds of v, or does not, is the same of every lesser value.
func (c Condition) sameBelow(v float64) bool {
	switch c.Operator {
	case "<", "<=":
		return c.Holds(v)
	case ">", ">=":
		return !c.Holds(v)
	}
	return false
}

// sameAbove tells whether what holds of v, or does not, is the same of every greater value.
func (c Condition) sameAbove(v float64) bool {
	switch c.Operator {
	case "<", "<=":
		return !c.Holds(v)
	case ">", ">=":
		return c.Holds(v)
	}
	return false
}

// Decide judges the condition by a value.
func (c Condition) Decide(v float64) Decision {
	d := Decision{Judged: true, Held: c.Holds(v)}
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		d.Value = &v
	}
	return d
}

// DecideCount judges the condition by a counter that reached n in so many seconds.
func (c Condition) DecideCount(n, seconds float64) Decision {
	if c.Method != "rate" {
		return c.Decide(n)
	}
	if seconds <= 0 {
		return Undecided("the test took no time")
	}
	return c.Decide(n / seconds)
}
