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

// Objective is a measure with a limit, such as "e2e_latency p99 < 20ms" or "lost == 0".
type Objective struct {
	Text    string
	Measure Measure
	Op      string
	Limit   float64 // in the measure's unit
}

// ParseObjective returns the objective of a text.
func ParseObjective(text string) (Objective, error) {
	o, limit, err := Split(text)
	if err == nil {
		o.Limit, err = o.Measure.parseLimit(limit)
	}
	if err != nil {
		return o, fmt.Errorf("objective %q: %w", text, err)
	}
	return o, nil
}

// Split returns an objective without its limit, and the text of the limit.
func Split(text string) (o Objective, limit string, err error) {
	fields := strings.Fields(text)
	at := slices.IndexFunc(fields, func(f string) bool { return slices.Contains(operators, f) })
	if at < 1 || len(fields) != at+2 {
		all := strings.Join(operators, " ")
		return o, "", fmt.Errorf("it is not understood: write a measure, one of %s and a limit, with spaces", all)
	}
	m, err := Parse(strings.Join(fields[:at], " "))
	return Objective{Text: text, Measure: m, Op: fields[at]}, fields[at+1], err
}

// parseLimit returns a limit in the measure's unit, from a duration or a number.
func (m Measure) parseLimit(text string) (float64, error) {
	if m.Unit == "ns" {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return 0, fmt.Errorf("%q is no duration", text)
		}
		return float64(d), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < 0 {
		return 0, fmt.Errorf("%q is no number", text)
	}
	return v, nil
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
