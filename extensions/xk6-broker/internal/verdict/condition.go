package verdict

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// Condition is the condition of a threshold in k6's grammar: "p(99.9)<50".
type Condition struct {
	Method   string  // avg, min, max, med, p, count, rate or value
	Quantile float64 // of the methods p, med, min and max, 0 to 1
	Operator string  // <, <=, >, >=, ==, === or !=
	Limit    float64
}

var syntax = regexp.MustCompile(`^\s*(avg|min|max|med|count|rate|value|p(?:\(([^()<>=!]*)\))?)\s*(<=|<|>=|>|===|==|!=)\s*([^<>=!]+)$`)

// ParseCondition parses the source of a threshold as k6 does.
func ParseCondition(source string) (Condition, error) {
	parts := syntax.FindStringSubmatch(source)
	if parts == nil {
		return Condition{}, fmt.Errorf("threshold %q: not a comparison of avg, min, med, max, p(N), count, rate or value", source)
	}
	limit, err := strconv.ParseFloat(strings.TrimSpace(parts[4]), 64)
	if err != nil {
		return Condition{}, fmt.Errorf("threshold %q: %w", source, err)
	}
	c := Condition{Method: parts[1], Operator: parts[3], Limit: limit}
	switch c.Method {
	case "med":
		c.Quantile = 0.5
	case "max":
		c.Quantile = 1
	case "p": // k6 takes p for p(0)
		c.Method = "min"
	}
	if !strings.HasPrefix(c.Method, "p(") {
		return c, nil
	}
	percent, err := strconv.ParseFloat(parts[2], 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return Condition{}, fmt.Errorf("threshold %q: a percentile is a number from 0 to 100", source)
	}
	// The decimal text is shifted, because 99.9/100 is not 0.999 in floating point, and ranks are exact.
	c.Quantile, _ = strconv.ParseFloat(strconv.FormatFloat(percent, 'f', -1, 64)+"e-2", 64)
	switch c.Method = "p"; c.Quantile {
	case 0:
		c.Method = "min"
	case 1:
		c.Method = "max"
	}
	return c, nil
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
func (c Condition) upper() bool { return c.Operator == "<" || c.Operator == "<=" }

// Read returns the value of a distribution that the condition compares, in ms.
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

// reach returns the quantile that the condition relies on: the median for a mean, and for a maximum the
// greatest one that is shown and supported.
func (c Condition) reach(h *hist.Histogram) float64 {
	switch c.Method {
	case "avg":
		return 0.5
	case "max":
		for i := len(quantiles) - 1; i >= 0; i-- {
			if h.Supported(quantiles[i]) {
				return quantiles[i]
			}
		}
	}
	return c.Quantile
}

// Decide compares a value.
func (c Condition) Decide(v float64) result.Decision {
	d := result.Decision{Judged: true, Held: c.Holds(v)}
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		d.Value = &v
	}
	return d
}

// DecideCount compares a counter that reached n in a number of seconds.
func (c Condition) DecideCount(n, seconds float64) result.Decision {
	if c.Method != "rate" {
		return c.Decide(n)
	}
	if seconds <= 0 {
		return Undecided("the test took no time")
	}
	return c.Decide(n / seconds)
}
