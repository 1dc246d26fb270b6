package schedule

import (
	"math/big"
	"math/bits"
)

// mass is a number of arrivals with a fraction, hi + lo/2⁶⁴: what the integral of a rate is counted in. A fixed point keeps
// its precision after any number of arrivals, and adds up to the same on any machine.
type mass struct{ hi, lo uint64 }

func (m mass) add(o mass) mass {
	lo, carry := bits.Add64(m.lo, o.lo, 0)
	hi, _ := bits.Add64(m.hi, o.hi, carry)
	return mass{hi, lo}
}

func (m mass) sub(o mass) mass {
	lo, borrow := bits.Sub64(m.lo, o.lo, 0)
	hi, _ := bits.Sub64(m.hi, o.hi, borrow)
	return mass{hi, lo}
}

func (m mass) less(o mass) bool { return m.hi < o.hi || m.hi == o.hi && m.lo < o.lo }

// massOf rounds r, which is not negative, down.
func massOf(r *big.Rat) mass {
	scaled := new(big.Int).Lsh(r.Num(), 64)
	scaled.Quo(scaled, r.Denom())
	lo := new(big.Int).SetUint64(^uint64(0))
	lo.And(lo, scaled)
	return mass{hi: scaled.Rsh(scaled, 64).Uint64(), lo: lo.Uint64()}
}

// uint128 is a whole number.
type uint128 struct{ hi, lo uint64 }

func mul64(a, b uint64) uint128 {
	hi, lo := bits.Mul64(a, b)
	return uint128{hi, lo}
}

func (a uint128) add(b uint128) uint128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	return uint128{a.hi + b.hi + carry, lo}
}

func (a uint128) sub(b uint128) uint128 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	return uint128{a.hi - b.hi - borrow, lo}
}

// times is a·m, rounded down.
func (a uint128) times(m mass) uint192 {
	h0, _ := bits.Mul64(a.lo, m.lo)
	h1, l1 := bits.Mul64(a.hi, m.lo)
	h2, l2 := bits.Mul64(a.lo, m.hi)
	h3, l3 := bits.Mul64(a.hi, m.hi)
	w0, c1 := bits.Add64(h0, l1, 0)
	w1, c2 := bits.Add64(h1, h2, c1)
	w2 := h3 + c2
	w0, c1 = bits.Add64(w0, l2, 0)
	w1, c2 = bits.Add64(w1, l3, c1)
	return uint192{w2 + c2, w1, w0}
}

// uint192 is a whole number.
type uint192 struct{ hi, mid, lo uint64 }

func (a uint192) less(b uint192) bool {
	if a.hi != b.hi {
		return a.hi < b.hi
	}
	if a.mid != b.mid {
		return a.mid < b.mid
	}
	return a.lo < b.lo
}

func (a uint192) sub(b uint192) uint192 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	mid, borrow := bits.Sub64(a.mid, b.mid, borrow)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return uint192{hi, mid, lo}
}

func (a uint192) float() float64 {
	return (float64(a.hi)*(1<<64)+float64(a.mid))*(1<<64) + float64(a.lo)
}
