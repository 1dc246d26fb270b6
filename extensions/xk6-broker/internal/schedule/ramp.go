package schedule

import (
	"fmt"
	"math"
	"math/big"
	"sort"
	"time"
)

// Stage changes the rate to Target, linearly over Duration. A Duration of 0 is a jump.
type Stage struct {
	Target   Rate
	Duration time.Duration
}

type ramp struct {
	pieces   []piece
	arrivals uint64
	most     float64
}

// piece is a stage with arrivals.
type piece struct {
	begin     time.Duration // since the start of the schedule
	length    float64       // in ns
	from, to  float64       // rates per ns
	done, end float64       // the schedule's integral before and after
}

// Ramp begins at the rate start and goes through the stages, as k6's ramping-arrival-rate does.
// Arrival n is due when the integral of the rate reaches n+1, up to and including the end of the
// last stage. A due time is off by a nanosecond at most or, after 10¹⁰ arrivals, by 10⁻⁵ of the
// distance between two. Ramp panics if [Plan.Schedule] would return an error.
func Ramp(start Rate, stages ...Stage) Intensity {
	if err := checkRamp(start, stages); err != nil {
		panic("schedule: Ramp: " + err.Error())
	}
	r := &ramp{}
	from, begin, done := start, time.Duration(0), new(big.Rat)
	for _, s := range stages {
		if s.Duration > 0 && (from.Events > 0 || s.Target.Events > 0) {
			p := piece{begin: begin, length: float64(s.Duration)}
			p.from, p.to = from.perNanosecond(), s.Target.perNanosecond()
			p.done, _ = done.Float64()
			done.Add(done, area(from, s))
			p.end, _ = done.Float64()
			r.pieces = append(r.pieces, p)
			r.most = max(r.most, from.PerSecond(), s.Target.PerSecond())
		}
		from, begin = s.Target, begin+s.Duration
	}
	r.arrivals = new(big.Int).Quo(done.Num(), done.Denom()).Uint64()
	return r
}

// area returns the integral over a stage, which is exact so that thirds add up.
func area(from Rate, s Stage) *big.Rat {
	sum := new(big.Rat).Add(from.exact(), s.Target.exact())
	return sum.Mul(sum, big.NewRat(int64(s.Duration), 2))
}

func (r *ramp) At(n uint64) (time.Duration, bool) {
	if n >= r.arrivals {
		return 0, false
	}
	return r.invert(float64(n + 1))
}

func (r *ramp) invert(m float64) (time.Duration, bool) {
	k := sort.Search(len(r.pieces), func(i int) bool { return r.pieces[i].end >= m })
	if k == len(r.pieces) {
		return 0, false
	}
	p := &r.pieces[k]
	return p.begin + floor(min(p.invert(m), p.length)), true
}

// invert returns the time in ns after which the integral is m. If the rate falls, it computes from
// the end, where the small numbers are.
func (p *piece) invert(m float64) float64 {
	if p.from <= p.to {
		return reach(p.from, (p.to-p.from)/p.length, m-p.done)
	}
	return p.length - reach(p.to, (p.from-p.to)/p.length, p.end-m)
}

// reach returns the t at which rate·t + slope·t²/2 is area, in a form without cancellation. The
// conversions keep compilers from fusing operations, which would differ from machine to machine.
func reach(rate, slope, area float64) float64 {
	if area <= 0 {
		return 0
	}
	root := math.Sqrt(float64(rate*rate) + float64(2*slope*area))
	return 2 * area / (rate + root)
}

func (r *ramp) count() (uint64, bool) { return r.arrivals, true }

func (r *ramp) total() float64 {
	if len(r.pieces) == 0 {
		return 0
	}
	return r.pieces[len(r.pieces)-1].end
}

func (r *ramp) peak() float64 { return r.most }

func (r *ramp) fork() Schedule { return r }

// checkRamp names the option that is wrong.
func checkRamp(start Rate, stages []Stage) error {
	if err := start.check(); err != nil {
		return fmt.Errorf("option %q: %w", "startRate", err)
	}
	length := time.Duration(0)
	for i, s := range stages {
		if err := s.Target.check(); err != nil {
			return fmt.Errorf("option \"stages[%d].target\": %w", i, err)
		}
		if s.Duration < 0 {
			return fmt.Errorf("option \"stages[%d].duration\": %v is not 0 or more", i, s.Duration)
		}
		if length += s.Duration; length < 0 {
			return fmt.Errorf("option %q: all stages together take longer than 292 years", "stages")
		}
	}
	return nil
}
