package result

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// Condition is what a threshold asks of a metric, in the grammar of k6: "p(99.9)<50".
type Condition struct {
	Method   string  // what is compared: avg, min, max, med, p, count, rate or value
	Quantile float64 // of the methods p, med, min and max, 0 to 1
	Operator string  // <, <=, >, >=, ==, === or !=
	Limit    float64
}

// operators are in the order of the search: one that begins with another comes first.
var operators = []string{"<=", "<", ">=", ">", "===", "==", "!="}

// ParseCondition parses the source of a threshold as k6 does.
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
		if err := c.parseMethod(strings.TrimSpace(left)); err != nil {
			return Condition{}, fmt.Errorf("threshold %q: %w", source, err)
		}
		return c, nil
	}
	return Condition{}, fmt.Errorf("threshold %q: no comparison: use one of %s", source, strings.Join(operators, " "))
}

func (c *Condition) parseMethod(method string) error {
	c.Method = method
	switch method {
	case "avg", "count", "rate", "value":
		return nil
	case "med":
		c.Quantile = 0.5
		return nil
	case "max":
		c.Quantile = 1
		return nil
	case "min", "p": // k6 takes p for p(0)
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
	// The decimal text is shifted, because 99.9/100 is not 0.999 in floating point, and ranks are exact.
	c.Quantile, _ = strconv.ParseFloat(strconv.FormatFloat(percent, 'f', -1, 64)+"e-2", 64)
	switch c.Method = "p"; c.Quantile {
	case 0:
		c.Method = "min"
	case 1:
		c.Method = "max"
	}
	return nil
}

// Holds reports whether a value fulfils the condition.
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

// upper reports whether the condition is an upper limit.
func (c Condition) upper() bool { return slices.Contains([]string{"<", "<="}, c.Operator) }

// Read returns what the condition compares of a distribution, in ms.
func (c Condition) Read(h *hist.Histogram) float64 {
	var ns float64
	switch c.Method {
	case "min":
		ns = float64(h.Min())
	case "max":
		ns = float64(h.Max())
	case "avg":
		ns = h.Mean()
	default:
		ns = float64(h.Quantile(c.Quantile))
	}
	return ns / float64(time.Millisecond)
}

// reach returns the quantile that the condition relies on: the median for a mean, and for a maximum the greatest one
// that is shown and supported.
func (c Condition) reach(h *hist.Histogram) float64 {
	switch c.Method {
	case "avg":
		return 0.5
	case "max":
		for _, q := range slices.Backward(shownQuantiles) {
			if h.Supported(q) {
				return q
			}
		}
	}
	return c.Quantile
}

// Decide compares a value.
func (c Condition) Decide(v float64) Decision {
	d := Decision{Judged: true, Held: c.Holds(v)}
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		d.Value = &v
	}
	return d
}

// DecideCount compares a counter that reached n in a number of seconds.
func (c Condition) DecideCount(n, seconds float64) Decision {
	if c.Method != "rate" {
		return c.Decide(n)
	}
	if seconds <= 0 {
		return Undecided("the test took no time")
	}
	return c.Decide(n / seconds)
}
