package result

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// round is a duration as people read it.
func round(ns int64) time.Duration {
	d := time.Duration(ns)
	if d > time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}

// percent is a share as people read it.
func percent(share float64) string {
	p := 100 * share
	if p >= 10 {
		return fmt.Sprintf("%.0f %%", p)
	}
	digits := 1 - int(math.Floor(math.Log10(p))) // two significant ones
	return strconv.FormatFloat(p, 'f', max(0, digits), 64) + " %"
}

// messages counts messages in a sentence about what became of them.
func messages(n int64) string {
	if n == 1 {
		return "1 message was"
	}
	return fmt.Sprintf("%d messages were", n)
}

// QuantileName is how people write a quantile: p99.9.
func QuantileName(q float64) string {
	if q == 1 {
		return "maximum"
	}
	return "p" + strconv.FormatFloat(math.Round(q*1e8)/1e6, 'f', -1, 64)
}
