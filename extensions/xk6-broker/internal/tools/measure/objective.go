package measure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// operators compare a measure with a limit.
var operators = []string{"<", "<=", ">", ">=", "==", "!="}

// Objective is a measure with a limit, such as "lost == 0", "e2e_latency p99 < 20ms" or
// "e2e_latency p99 > 1.1x".
type Objective struct {
	Text     string
	Measure  Measure
	Op       string
	Limit    float64 // in the measure's unit
	Multiple bool    // the limit is a multiple of another run's value
}

// ParseObjective returns the objective of a text.
func ParseObjective(text string) (o Objective, err error) {
	fields := strings.Fields(text)
	at := slices.IndexFunc(fields, func(f string) bool { return slices.Contains(operators, f) })
	if at < 1 || len(fields) != at+2 {
		return o, fmt.Errorf("condition %q: it is not understood: write a measure, an operator (%s) and a limit, "+
			`such as "e2e_latency p99 > 20ms" or "lost > 0"`, text, strings.Join(operators, " "))
	}
	o.Text, o.Op = text, fields[at]
	if o.Measure, err = Parse(strings.Join(fields[:at], " ")); err == nil {
		err = o.parseLimit(fields[at+1])
	}
	if err != nil {
		return o, fmt.Errorf("condition %q: %w", text, err)
	}
	return o, nil
}

// parseLimit reads a limit: a multiple, a duration of a latency, or a number.
func (o *Objective) parseLimit(text string) (err error) {
	number, multiple := strings.CutSuffix(text, "x")
	if o.Multiple = multiple; o.Measure.Unit == "ns" && !multiple {
		d, err := time.ParseDuration(text)
		if o.Limit = float64(d); err != nil || d < 0 {
			return fmt.Errorf("%q is no duration", text)
		}
		return nil
	}
	o.Limit, err = strconv.ParseFloat(number, 64)
	if err != nil || !(o.Limit >= 0) || math.IsInf(o.Limit, 0) || multiple && o.Limit == 0 {
		return fmt.Errorf("%q is no number, and no multiple such as 1.1x", text)
	}
	return nil
}

// Met reports whether a value meets the objective.
func (o Objective) Met(v float64) bool {
	switch o.Op {
	case ">":
		return v > o.Limit
	case ">=":
		return v >= o.Limit
	case "<":
		return v < o.Limit
	case "<=":
		return v <= o.Limit
	case "!=":
		return v != o.Limit
	}
	return v == o.Limit
}
