package hist

import (
	"math/big"
	"strconv"
)

// enough is the number of values that must lie beyond a quantile.
const enough = 10

// Percentile is one point of a distribution.
type Percentile struct {
	Q         float64 `json:"q"`         // the quantile, 0 to 1
	Value     int64   `json:"value"`     // in nanoseconds, as Quantile returns it
	Beyond    uint64  `json:"beyond"`    // values that rank above it
	Supported bool    `json:"supported"` // Beyond is at least 10
}

// rank returns the number of values at or below the quantile q: q*count, rounded up. It computes in
// decimal, because in floating point 0.999999 of ten million is not always 9999990.
func (h *Histogram) rank(q float64) uint64 {
	if !(q > 0) { // NaN too
		return 0
	}
	decimal, _ := new(big.Rat).SetString(strconv.FormatFloat(min(q, 1), 'g', -1, 64))
	rank, rest := new(big.Int).SetUint64(h.Count()), new(big.Int)
	rank.DivMod(rank.Mul(rank, decimal.Num()), decimal.Denom(), rest)
	return rank.Uint64() + uint64(rest.Sign()) //gosec:disable G115 -- 0 or 1
}

// Quantile returns the least value in nanoseconds such that q*Count values are not greater, 0 if
// there is none. It is the greatest value of its bucket, but at most Max. Quantile(0) is Min.
func (h *Histogram) Quantile(q float64) int64 {
	rank := h.rank(q)
	if rank == 0 {
		return h.Min()
	}
	var sum uint64
	for v, n := range h.All() {
		if sum += n; sum >= rank {
			return v
		}
	}
	return h.Max()
}

// Beyond returns the number of values that rank above the quantile q.
func (h *Histogram) Beyond(q float64) uint64 { return h.Count() - h.rank(q) }

// Supported reports whether at least 10 values lie beyond the quantile q. It is false for q = 1.
func (h *Histogram) Supported(q float64) bool { return h.Beyond(q) >= enough }

// Percentiles returns a point for each quantile, in the same order.
func (h *Histogram) Percentiles(quantiles []float64) []Percentile {
	points := make([]Percentile, len(quantiles))
	for i, q := range quantiles {
		points[i] = Percentile{Q: q, Value: h.Quantile(q), Beyond: h.Beyond(q), Supported: h.Supported(q)}
	}
	return points
}
