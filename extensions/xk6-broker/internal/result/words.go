package result

import (
	"math"
	"strconv"
)

// QuantileName is how people write a quantile: p99.9.
func QuantileName(q float64) string {
	if q == 1 {
		return "maximum"
	}
	return "p" + strconv.FormatFloat(math.Round(q*1e8)/1e6, 'f', -1, 64)
}
