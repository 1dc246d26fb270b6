//gosec:disable G115 -- times and rates, not negative
package schedule

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"sort"
	"strings"
	"time"
)

// Stage changes the rate to Target, linearly over Duration. A Duration of 0 is a jump.
type Stage struct {
	Target   Rate
	Duration time.Duration
}

type ramp struct {
	start  Rate
	stages []Stage
	pieces []piece
	ends   mass
	most   float64
}

// Ramp begins at the rate start and goes through the stages, as k6's ramping-arrival-rate does. Arrival n is due at the
// earliest moment when the integral of the rate is n+1, up to and including the end of the last stage, so that there are
// as many arrivals as the integral over all stages, rounded down.
//
// The integral is exact where the neighbouring rates have a common denominator within 146 years, as all whole numbers per the same
// unit have; else the two are first rounded down to whole numbers of arrivals in 146 years. Ramp panics if a rate is not
// valid, a duration is negative, or all together exceed 292 years; [Plan.Schedule] gives an error instead.
func Ramp(start Rate, stages ...Stage) Intensity {
	if err := checkRamp(start, stages); err != nil {
		panic("pace: Ramp: " + err.Error())
	}
	r := &ramp{start: start, stages: append([]Stage(nil), stages...)}
	from, begin, done := start, time.Duration(0), new(big.Rat)
	for _, s := range stages {
		if s.Duration > 0 && (from.Events > 0 || s.Target.Events > 0) {
			p := newPiece(from, s)
			p.begin, p.done = begin, massOf(done)
			done.Add(done, p.area())
			p.end = massOf(done)
			r.pieces = append(r.pieces, p)
			r.most = max(r.most, from.PerSecond(), s.Target.PerSecond())
		}
		from, begin = s.Target, begin+s.Duration
	}
	r.ends = massOf(done)
	return r
}

func (r *ramp) At(n uint64) (time.Duration, bool) {
	if n == math.MaxUint64 {
		return 0, false
	}
	return r.invert(mass{hi: n + 1})
}

func (r *ramp) invert(m mass) (time.Duration, bool) {
	k := sort.Search(len(r.pieces), func(i int) bool { return !r.pieces[i].end.less(m) })
	if k == len(r.pieces) {
		return 0, false
	}
	p := &r.pieces[k]
	return p.begin + time.Duration(p.invert(m.sub(p.done))), true
}

func (r *ramp) count() (uint64, bool) { return r.ends.hi, true }

func (r *ramp) total() mass { return r.ends }

func (r *ramp) peak() float64 { return r.most }

func (r *ramp) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ramp from %v", r.start)
	for i, s := range r.stages {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " to %v in %v", s.Target, s.Duration)
	}
	return b.String()
}

// checkRamp names what is wrong as a script would have it.
func checkRamp(start Rate, stages []Stage) error {
	if err := start.check(); err != nil {
		return fmt.Errorf("option %q: %w", "startRate", err)
	}
	whole := time.Duration(0)
	for i, s := range stages {
		if err := s.Target.check(); err != nil {
			return fmt.Errorf("option \"stages[%d].target\": %w", i, err)
		}
		if s.Duration < 0 {
			return fmt.Errorf("option \"stages[%d].duration\": %v is not 0 or more", i, s.Duration)
		}
		if whole += s.Duration; whole < 0 {
			return fmt.Errorf("option %q: all stages together take longer than 292 years", "stages")
		}
	}
	return nil
}

// piece is a stage with arrivals. With D its length, and the rate going from a/P to b/P, the integral after t is
//
//	A(t) = a·t/P + (b-a)·t²/(2·D·P)
//
// and the numbers below are such that 2·D·P·A(t) is whole for a whole t. With D < 2⁶³, P ≤ 2⁶² and a, b ≤ P it is less than 2¹⁸⁹.
type piece struct {
	begin     time.Duration // since the start of the schedule
	done, end mass          // the schedule's integral before and after, rounded down
	length    uint64        // D
	from, to  uint64        // a, b
	per       uint64        // P
	scale     uint128       // 2·D·P
	linear    uint128       // 2·D·a
	all       uint192       // 2·D·P·A(D)
}

func newPiece(from Rate, s Stage) piece {
	p := piece{length: uint64(s.Duration)}
	p.from, p.to, p.per = common(from, s.Target)
	p.scale = mul64(2*p.length, p.per)
	p.linear = mul64(2*p.length, p.from)
	p.all = p.integral(p.length)
	return p
}

// area is A(D).
func (p *piece) area() *big.Rat {
	sum := new(big.Int).SetUint64(p.from + p.to)
	sum.Mul(sum, new(big.Int).SetUint64(p.length))
	return new(big.Rat).SetFrac(sum, new(big.Int).SetUint64(2*p.per))
}

// integral is 2·D·P·A(t) = t·(2·D·a + (b-a)·t).
func (p *piece) integral(t uint64) uint192 {
	sum := p.linear
	if p.to >= p.from {
		sum = sum.add(mul64(p.to-p.from, t))
	} else {
		sum = sum.sub(mul64(p.from-p.to, t))
	}
	return sum.times(mass{hi: t})
}

// invert is the greatest whole t ≤ D with A(t) ≤ m. Floating point guesses it, and whole numbers correct the guess, so that the
// result is exact, never decreases with m, and is the same on any machine.
func (p *piece) invert(m mass) uint64 {
	want := p.scale.times(m)
	if !want.less(p.all) {
		return p.length
	}
	t := p.guess(want)
	for t > 0 && want.less(p.integral(t)) {
		t--
	}
	for t < p.length && !want.less(p.integral(t+1)) {
		t++
	}
	return t
}

// guess solves t·(2·D·a + (b-a)·t) = want in the form that has no cancellation, and where the rate falls it does so backwards from the
// end, where it rises.
func (p *piece) guess(want uint192) uint64 {
	length := float64(p.length)
	root := func(low, high uint64, y float64) float64 {
		slow := length * float64(low)
		return y / (slow + math.Sqrt(slow*slow+float64(high-low)*y))
	}
	var t float64
	if p.from <= p.to {
		t = root(p.from, p.to, want.float())
	} else {
		t = length - root(p.to, p.from, p.all.sub(want).float())
	}
	switch {
	case t >= length:
		return p.length
	case t > 0:
		return uint64(t)
	}
	return 0
}

// common gives two rates one denominator.
func common(x, y Rate) (a, b, per uint64) {
	a, p := reduce(x)
	b, q := reduce(y)
	if hi, lo := bits.Mul64(p/gcd(p, q), q); hi == 0 && lo <= maxPer {
		return a * (lo / p), b * (lo / q), lo
	}
	return rescale(a, p), rescale(b, q), maxPer
}

func reduce(r Rate) (events, per uint64) {
	if r.Events == 0 {
		return 0, 1
	}
	g := gcd(uint64(r.Events), uint64(r.Per))
	return uint64(r.Events) / g, uint64(r.Per) / g
}

// rescale is events·maxPer/per, rounded down. It is at least 1 if events are.
func rescale(events, per uint64) uint64 {
	hi, lo := bits.Mul64(events, maxPer)
	n, _ := bits.Div64(hi, lo, per) // at most maxPer, since events are at most per
	return n
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
