package schedule

import (
	"errors"
	"fmt"
	"time"
)

// Plan describes a schedule as a user does. It is the one way from options to due times, so that equal options have equal due
// times whatever runs them.
type Plan struct {
	// Rate and Duration make a [Constant] schedule; a Duration of 0 has no end.
	Rate     Rate
	Duration time.Duration
	// StartRate and Stages make a [Ramp] instead.
	StartRate Rate
	Stages    []Stage
	// Arrivals is how arrivals keep to the rate: "constant", which is also "", evenly, or "poisson", at random.
	Arrivals string
	// Seed is what random arrivals are drawn from.
	Seed uint64
}

// Schedule gives what the plan describes. An error names the option, what was given and what is allowed.
func (p Plan) Schedule() (Schedule, error) {
	base, err := p.intensity()
	if err != nil {
		return nil, err
	}
	switch p.Arrivals {
	case "", "constant":
		return base, nil
	case "poisson":
		return Poisson(base, p.Seed), nil
	}
	return nil, fmt.Errorf("option %q: %q is not one of constant, poisson", "arrivals", p.Arrivals)
}

func (p Plan) intensity() (Intensity, error) {
	if len(p.Stages) == 0 {
		switch err := p.Rate.positive(); {
		case p.StartRate != Rate{}:
			return nil, fmt.Errorf("option %q: %v is given without stages to go on with; a steady rate is given as %q", "startRate", p.StartRate, "rate")
		case p.Rate == Rate{}:
			return nil, errors.New(`option "rate" is missing or 0: it must be more than 0, or "stages" be given`)
		case err != nil:
			return nil, fmt.Errorf("option %q: %v: %w", "rate", p.Rate, err)
		case p.Duration < 0:
			return nil, fmt.Errorf("option %q: %v is not 0 or more", "duration", p.Duration)
		}
		return Constant(p.Rate, p.Duration), nil
	}
	if p.Rate.Events != 0 {
		return nil, fmt.Errorf("option %q: %v is given besides stages, which have rates of their own; the first is %q", "rate", p.Rate, "startRate")
	}
	if p.Duration != 0 {
		return nil, fmt.Errorf("option %q: %v is given besides stages, which have durations of their own", "duration", p.Duration)
	}
	if err := checkRamp(p.StartRate, p.Stages); err != nil {
		return nil, err
	}
	ramp := Ramp(p.StartRate, p.Stages...)
	if Peak(ramp) == 0 {
		return nil, fmt.Errorf("option %q: %v never has a rate above 0 for any time", "stages", ramp)
	}
	return ramp, nil
}
