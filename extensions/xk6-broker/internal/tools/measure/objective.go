package measure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Operators compare a measure with a limit.
var Operators = []string{"<", "<=", ">", ">=", "==", "!="}

// Objective is what a measure should be, such as "e2e_latency p99 < 20ms" or "lost == 0".
type Objective struct {
	Text    string
	Measure Measure
	Op      string
	Limit   float64 // ns, by second or a number
}

// ParseObjective understands an objective.
func ParseObjective(text string) (Objective, error) {
	m, op, limit, err := split(text, []string{"<", "<=", "=="}, Operators)
	o := Objective{Text: text, Measure: m, Op: op}
	if err == nil {
		o.Limit, err = m.ParseLimit(limit)
	}
	if err != nil {
		return o, fmt.Errorf("objective %q: %w", text, err)
	}
	return o, nil
}

// Split takes a measure, an operator and a limit apart.
func Split(text string) (m Measure, op, limit string, err error) {
	return split(text, Operators, Operators)
}

// split names those of the operators that are of use.
func split(text string, useful, known []string) (m Measure, op, limit string, err error) {
	fields := strings.Fields(text)
	at := slices.IndexFunc(fields, func(f string) bool { return slices.Contains(known, f) })
	if at < 1 || len(fields) != at+2 {
		return m, "", "", fmt.Errorf("it is not understood: write a measure, one of %s and a limit, with spaces between", strings.Join(useful, " "))
	}
	m, err = Parse(strings.Join(fields[:at], " "))
	return m, fields[at], fields[at+1], err
}

// ParseLimit reads a limit in the measure's unit: a duration or a number.
func (m Measure) ParseLimit(text string) (float64, error) {
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

// Holds reports whether a value is on the right side of a limit.
func Holds(v float64, op string, limit float64) bool {
	switch op {
	case ">":
		return v > limit
	case ">=":
		return v >= limit
	case "<":
		return v < limit
	case "<=":
		return v <= limit
	case "!=":
		return v != limit
	}
	return v == limit
}

// Met reports whether a value meets the objective.
func (o Objective) Met(v float64) bool { return Holds(v, o.Op, o.Limit) }
