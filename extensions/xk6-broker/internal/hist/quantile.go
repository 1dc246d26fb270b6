package hist

import (
	"math/big"
	"strconv"
)

// enough is how many values must lie beyond a quantile before it says anything about the system.
const enough = 10

// Percentile is one point of a distribution.
type Percentile struct {
	Q         float64 `json:"q"`         // the quantile, 0 to 1
	Value     int64   `json:"value"`     // in nanoseconds, as Quantile gives it
	Beyond    uint64  `json:"beyond"`    // how many values rank above it
	Supported bool    `json:"supported"` // whether Beyond is enough to believe it
}

// rank is how many values must be at or below the quantile q: the least whole number that is not less than q*count. It
// takes q as it is written in decimal: in floating point, 0.999999 of ten million is not always 9999990.
func (h *Histogram) rank(q float64) uint64 {
	if !(q > 0) { // also where q is not a number
		return 0
	}
	if q >= 1 {
		return h.count
	}
	decimal, _ := new(big.Rat).SetString(strconv.FormatFloat(q, 'g', -1, 64))
	rank, rest := new(big.Int).SetUint64(h.count), new(big.Int)
	rank.DivMod(rank.Mul(rank, decimal.Num()), decimal.Denom(), rest)
	return rank.Uint64() + uint64(rest.Sign()) //gosec:disable G115 -- a count, far below the limit
}

// Quantile is the smallest recorded value v such that at least q*Count values are <= v, in nanoseconds. A value is known
// as its bucket, and the greatest value of the bucket stands for it, though never more than Max. Quantile(1) is Max, and
// Quantile(0) is Min; a q outside 0 to 1 is taken as the nearer of them, and 0 is the answer where there is no value.
func (h *Histogram) Quantile(q float64) int64 { return h.Quantiles(q)[0] }

// Quantiles returns several quantiles, which must ascend.
func (h *Histogram) Quantiles(ascending ...float64) []int64 {
	values, ranks := make([]int64, len(ascending)), make([]uint64, len(ascending))
	for i, q := range ascending {
		values[i], ranks[i] = h.Max(), h.rank(q)
	}
	next := 0
	for ; next < len(ranks) && ranks[next] == 0; next++ {
		values[next] = h.Min()
	}
	var sum uint64
	for v, c := range h.All() {
		for sum += c; next < len(ranks) && sum >= ranks[next]; next++ {
			values[next] = v
		}
		if next == len(ranks) {
			break
		}
	}
	return values
}

// Beyond is how many values rank above the quantile q: Count - q*Count, rounded down.
func (h *Histogram) Beyond(q float64) uint64 { return h.count - h.rank(q) }

// Supported reports whether the quantile q is worth printing: at least 10 values lie beyond it, Count*(1-q) >= 10. It is
// false for q = 1; the maximum is exact and speaks for itself.
func (h *Histogram) Supported(q float64) bool { return h.Beyond(q) >= enough }

// Percentiles gives a point for each of the quantiles, in the order they were asked for.
func (h *Histogram) Percentiles(quantiles []float64) []Percentile {
	points := make([]Percentile, len(quantiles))
	for i, q := range quantiles {
		points[i] = Percentile{Q: q, Value: h.Quantile(q), Beyond: h.Beyond(q), Supported: h.Supported(q)}
	}
	return points
}
