package schedule

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
)

// Rate is Events arrivals in every Per: 2000 in 1s, or 1 in 3s. The zero Rate has no arrivals. Per
// is at most 2⁶² ns (146 years), and no rate exceeds one arrival per nanosecond.
type Rate struct {
	Events int64
	Per    time.Duration
}

const maxPer = 1 << 62

// leastEvents is the number of events from which a rounded rate is exact to 0.001 %.
const leastEvents = 100_000

// NewRate returns a rate of events arrivals in every unit of time. A number with a fraction becomes
// a fraction of whole numbers: 0.1 in 1s is 1 in 10s. Where that needs a longer time than a Rate
// holds, the rate is rounded, by less than 0.001 %. Zero is a rate, for a [Stage].
func NewRate(events float64, unit time.Duration) (Rate, error) {
	refuse := func(why string) (Rate, error) {
		return Rate{}, fmt.Errorf("%v per %v is no rate: %s", events, unit, why)
	}
	switch {
	case math.IsNaN(events) || math.IsInf(events, 0):
		return refuse("it must be a finite number")
	case events == 0 && unit > 0:
		return Rate{Per: unit}, nil
	case unit <= 0 || unit > maxPer || events < 0 || events > float64(unit):
		return refuse(limits)
	}
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(events, 'g', -1, 64))
	most := maxPer / int64(unit)
	if exact.Num().IsInt64() && exact.Denom().IsInt64() && exact.Denom().Int64() <= most {
		return Rate{Events: exact.Num().Int64(), Per: time.Duration(exact.Denom().Int64()) * unit}, nil
	}
	rounded := math.Round(events * float64(most))
	if rounded < leastEvents {
		return refuse("it is too low: use a longer time unit")
	}
	return Rate{Events: int64(rounded), Per: time.Duration(most) * unit}, nil
}

const limits = "it must be from 0 to one arrival per nanosecond, and the time unit more than 0 and at most 146 years"

// String returns the rate as "2000/s" or "1/3s".
func (r Rate) String() string {
	events := strconv.FormatInt(r.Events, 10)
	switch r.Per {
	case 0:
		return events
	case time.Second:
		return events + "/s"
	}
	return events + "/" + r.Per.String()
}

// PerSecond returns the rate in arrivals per second.
func (r Rate) PerSecond() float64 { return r.perNanosecond() * float64(time.Second) }

func (r Rate) perNanosecond() float64 {
	if r.Events == 0 {
		return 0
	}
	return float64(r.Events) / float64(r.Per)
}

// exact returns the rate per nanosecond.
func (r Rate) exact() *big.Rat {
	if r.Events == 0 {
		return new(big.Rat)
	}
	return big.NewRat(r.Events, int64(r.Per))
}

// check returns an error for a rate that is neither zero nor within the limits.
func (r Rate) check() error {
	if r == (Rate{}) || r.Per > 0 && r.Per <= maxPer && r.Events >= 0 && r.Events <= int64(r.Per) {
		return nil
	}
	return fmt.Errorf("%d per %v is no rate: %s", r.Events, r.Per, limits)
}

// positive returns an error for a rate without arrivals too.
func (r Rate) positive() error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Events == 0 {
		return errors.New("it must be more than 0")
	}
	return nil
}
