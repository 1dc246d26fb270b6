package schedule

import (
	"errors"
	"fmt"
	"time"
)

// Plan has the options of a schedule.
type Plan struct {
	// Rate and Duration make a [Constant] schedule. A Duration of 0 has no end.
	Rate     Rate
	Duration time.Duration
	// StartRate and Stages make a [Ramp] instead.
	StartRate Rate
	Stages    []Stage
	// Arrivals is "constant", which is also "", or "poisson".
	Arrivals string
	// Seed makes the random arrivals.
	Seed uint64
}

// Schedule returns the schedule. An error names the option.
func (p Plan) Schedule() (Schedule, error) {
	intensity := p.constant
	if len(p.Stages) > 0 {
		intensity = p.ramp
	}
	base, err := intensity()
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

func (p Plan) constant() (Intensity, error) {
	switch err := p.Rate.positive(); {
	case p.StartRate != Rate{}:
		return nil, errors.New(`option "startRate" is for "stages"; without them use "rate"`)
	case p.Rate == Rate{}:
		return nil, errors.New(`option "rate" is missing or 0: it must be more than 0, or "stages" be given`)
	case err != nil:
		return nil, fmt.Errorf("option %q: %v: %w", "rate", p.Rate, err)
	case p.Duration < 0:
		return nil, fmt.Errorf("option %q: %v is not 0 or more", "duration", p.Duration)
	}
	return Constant(p.Rate, p.Duration), nil
}

func (p Plan) ramp() (Intensity, error) {
	if p.Rate.Events != 0 || p.Duration != 0 {
		return nil, errors.New(`option "stages" excludes "rate" and "duration"`)
	}
	if err := checkRamp(p.StartRate, p.Stages); err != nil {
		return nil, err
	}
	ramp := Ramp(p.StartRate, p.Stages...)
	if Peak(ramp) == 0 {
		return nil, fmt.Errorf("option %q: the rate is never above 0", "stages")
	}
	return ramp, nil
}
