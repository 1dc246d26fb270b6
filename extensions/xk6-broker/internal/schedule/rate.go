package schedule

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Rate is Events arrivals in every Per, kept as the two whole numbers: 2000 in 1s, or 1 in 3s. The zero Rate is no
// arrivals. Events is not negative, Per is at most 2⁶² ns (146 years), and no rate exceeds one arrival per nanosecond, the
// resolution of a due time.
type Rate struct {
	Events int64
	Per    time.Duration
}

// maxPer keeps all products of a schedule within 192 bits.
const maxPer = 1 << 62

// NewRate is a rate of events arrivals in every unit of time. A number with a fraction becomes the first convergent of its
// continued fraction that is the same float64, which is what was meant: 0.1 in 1s is 1 in 10s, and 1000/7 in 1s is 1000 in
// 7s. Where that needs a longer time than a Rate holds, it becomes a rate that differs by less than one part in 2⁵².
// Zero is a rate, of use in a [Stage]. Events that are negative or not finite, and rates that [Rate] excludes, are errors.
func NewRate(events float64, unit time.Duration) (Rate, error) {
	fail := func(why string) (Rate, error) {
		return Rate{}, fmt.Errorf("%v per %v is no rate: %s", events, unit, why)
	}
	switch {
	case unit <= 0:
		return fail("the time unit must be more than 0")
	case unit > maxPer:
		return fail(tooLong)
	case math.IsNaN(events) || math.IsInf(events, 0):
		return fail("it must be a finite number")
	case events < 0:
		return fail("it must not be negative")
	case events > float64(unit):
		return fail(tooFast)
	case events == 0:
		return Rate{Per: unit}, nil
	}
	x := new(big.Rat).SetFloat64(events)
	if p, q, same := fraction(x, maxPer/int64(unit)); same {
		return Rate{Events: p, Per: time.Duration(q) * unit}, nil
	}
	x.Quo(x, new(big.Rat).SetInt64(int64(unit)))
	p, q, _ := fraction(x, maxPer)
	if p == 0 {
		return fail("it is less than one arrival in 146 years")
	}
	return Rate{Events: p, Per: time.Duration(q)}, nil
}

const (
	tooLong = "the time unit must not exceed 146 years"
	tooFast = "it must not exceed one arrival per nanosecond"
)

// fraction approximates x by the first of its continued fraction's convergents p/q that is the same float64, or else by the last
// with q ≤ limit.
func fraction(x *big.Rat, limit int64) (p, q int64, same bool) {
	want, _ := x.Float64()
	a, b := new(big.Int).Set(x.Num()), new(big.Int).Set(x.Denom())
	p0, q0, p1, q1 := big.NewInt(0), big.NewInt(1), big.NewInt(1), big.NewInt(0)
	for b.Sign() != 0 && !same {
		whole, rest := new(big.Int).QuoRem(a, b, new(big.Int))
		p2 := new(big.Int).Mul(whole, p1)
		q2 := new(big.Int).Mul(whole, q1)
		p2.Add(p2, p0)
		q2.Add(q2, q0)
		if !p2.IsInt64() || !q2.IsInt64() || q2.Int64() > limit {
			break
		}
		p0, q0, p1, q1 = p1, q1, p2, q2
		a, b = b, rest
		got, _ := new(big.Rat).SetFrac(p1, q1).Float64()
		same = got == want
	}
	return p1.Int64(), q1.Int64(), same
}

// ParseRate reads "2000/s", "1/3s", "0.5/m", "300/100ms" or "2000", which is per second: a number as in [NewRate], and the
// time as in [time.ParseDuration] with the 1 left out if it is one unit. It reads what [Rate.String] writes.
func ParseRate(s string) (Rate, error) {
	number, unit, found := strings.Cut(s, "/")
	number, unit = strings.TrimSpace(number), strings.TrimSpace(unit)
	per := time.Second
	if found {
		if unit != "" && (unit[0] < '0' || unit[0] > '9') && unit[0] != '.' {
			unit = "1" + unit
		}
		var err error
		if per, err = time.ParseDuration(unit); err != nil || per <= 0 {
			return Rate{}, fmt.Errorf(`%q is no rate such as "2000/s" or "1/3s"`, s)
		}
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		r := Rate{Events: n, Per: per}
		return r, r.check()
	}
	events, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return Rate{}, fmt.Errorf(`%q is no rate such as "2000/s" or "1/3s"`, s)
	}
	return NewRate(events, per)
}

// String writes the rate as "2000/s" or "1/3s".
func (r Rate) String() string {
	events := strconv.FormatInt(r.Events, 10)
	switch r.Per {
	case 0:
		return events
	case time.Millisecond:
		return events + "/ms"
	case time.Second:
		return events + "/s"
	case time.Minute:
		return events + "/m"
	case time.Hour:
		return events + "/h"
	}
	return events + "/" + r.Per.String()
}

// PerSecond is the rate in arrivals per second, Events/Per, to the precision of a float64.
func (r Rate) PerSecond() float64 {
	if r.Events == 0 {
		return 0
	}
	return float64(r.Events) / float64(r.Per) * float64(time.Second)
}

// check tells what is wrong with a rate that was not made by NewRate.
func (r Rate) check() error {
	var why string
	switch {
	case r == Rate{}:
		return nil
	case r.Per <= 0:
		why = "the time unit must be more than 0"
	case r.Per > maxPer:
		why = tooLong
	case r.Events < 0:
		why = "it must not be negative"
	case r.Events > int64(r.Per):
		why = tooFast
	default:
		return nil
	}
	return fmt.Errorf("%d per %v is no rate: %s", r.Events, r.Per, why)
}

// positive tells what is wrong with a rate that must have arrivals.
func (r Rate) positive() error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Events == 0 {
		return errors.New("it must be more than 0")
	}
	return nil
}
