package schedule

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// TestArithmetic compares with numbers without limit, on words that carry often.
func TestArithmetic(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(7, 1))
	word := func() uint64 {
		switch source.IntN(4) {
		case 0:
			return source.Uint64N(3)
		case 1:
			return -source.Uint64N(3)
		}
		return source.Uint64() >> source.IntN(64)
	}
	number := func(words ...uint64) *big.Int {
		n := new(big.Int)
		for _, w := range words {
			n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(w))
		}
		return n
	}
	modulo := func(n *big.Int, bits uint) *big.Int { return n.Mod(n, new(big.Int).Lsh(big.NewInt(1), bits)) }
	same := func(what string, got, want *big.Int) {
		t.Helper()
		if got.Cmp(want) != 0 {
			t.Fatalf("%s is %x, want %x", what, got, want)
		}
	}
	for range 20_000 {
		a, b := uint128{word(), word()}, uint128{word(), word()}
		x, y := number(a.hi, a.lo), number(b.hi, b.lo)
		m, n := mass(a), mass(b)

		sum, difference := a.add(b), a.sub(b)
		same("uint128 sum", number(sum.hi, sum.lo), modulo(new(big.Int).Add(x, y), 128))
		same("uint128 difference", number(difference.hi, difference.lo), modulo(new(big.Int).Sub(x, y), 128))
		sum, difference = uint128(m.add(n)), uint128(m.sub(n))
		same("mass sum", number(sum.hi, sum.lo), modulo(new(big.Int).Add(x, y), 128))
		same("mass difference", number(difference.hi, difference.lo), modulo(new(big.Int).Sub(x, y), 128))
		if m.less(n) != (x.Cmp(y) < 0) {
			t.Fatalf("%x < %x is %v", x, y, m.less(n))
		}

		product := a.times(n)
		same("product", number(product.hi, product.mid, product.lo), new(big.Int).Rsh(new(big.Int).Mul(x, y), 64))

		c, d := uint192{word(), word(), word()}, uint192{word(), word(), word()}
		if source.IntN(2) == 0 {
			d.hi = c.hi
		}
		z, w := number(c.hi, c.mid, c.lo), number(d.hi, d.mid, d.lo)
		rest := c.sub(d)
		same("uint192 difference", number(rest.hi, rest.mid, rest.lo), modulo(new(big.Int).Sub(z, w), 192))
		if c.less(d) != (z.Cmp(w) < 0) {
			t.Fatalf("%x < %x is %v", z, w, c.less(d))
		}
		exact, _ := new(big.Float).SetInt(z).Float64()
		if f := c.float(); f < exact*(1-1e-15) || f > exact*(1+1e-15) {
			t.Fatalf("%x is %v as a float64, want %v", z, f, exact)
		}

		// A fraction of which the whole part fits.
		ratio := new(big.Rat).SetFrac(number(a.hi, a.lo), number(1, b.lo>>1))
		back := massOf(ratio)
		scaled := new(big.Int).Lsh(ratio.Num(), 64)
		same("mass of a ratio", number(back.hi, back.lo), scaled.Quo(scaled, ratio.Denom()))
	}
}

// TestConstantInvert compares m·Per/Events for an m with a fraction, as Poisson arrivals have it, with numbers without limit.
func TestConstantInvert(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(8, 1))
	for range 20_000 {
		per := 1 + source.Int64N(1<<source.Int64N(62))
		r := Rate{Events: 1 + source.Int64N(min(per, 1<<source.Int64N(62))), Per: time.Duration(per)}
		m := mass{hi: source.Uint64() >> source.IntN(64), lo: source.Uint64()}
		want := new(big.Int).Lsh(new(big.Int).SetUint64(m.hi), 64)
		want.Or(want, new(big.Int).SetUint64(m.lo)).Mul(want, big.NewInt(per)).Rsh(want, 64).Quo(want, big.NewInt(r.Events))
		if due, ok := Constant(r, 0).(*constant).invert(m); ok != want.IsInt64() || ok && int64(due) != want.Int64() {
			t.Fatalf("%v: due at %d ns (%v) for %+v, want %v", r, due, ok, m, want)
		}
	}
}
