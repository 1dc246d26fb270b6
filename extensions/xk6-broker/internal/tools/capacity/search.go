// Package capacity searches for the greatest rate at which a script meets its objectives: an
// interval that has it with a stated confidence. docs/studies.md explains why the confidence holds.
package capacity

import (
	"context"
	"errors"
	"math"
)

// Answer is the answer of a probe, a run at one rate.
type Answer uint8

// Answers.
const (
	Met       Answer = iota // the run is valid, steady, and meets every objective
	Missed                  // it does not
	Generator               // the load generator or its machine may have made the numbers
)

// String returns the answer as a word.
func (a Answer) String() string { return [...]string{"met", "missed", "generator"}[a] }

// Finding is the end of a search.
type Finding uint8

// Findings.
const (
	Undecided Finding = iota // the interval is not confirmed
	Found
	TooLittle
	NotReached
	GeneratorFirst // the load generator did not keep the rate at High
	NoSteadyState
)

// String returns the finding in words.
func (f Finding) String() string {
	return [...]string{
		"The probes ended before the capacity was known: allow more --probes", "The capacity is",
		"The lowest rate does not meet the objectives: the capacity is",
		"The highest allowed rate meets the objectives: the capacity is",
		"The generator ended first: the system's capacity is not known, the generator's is",
		"There is no steady state: probes at the same rate contradict one another, the last",
	}[f]
}

// Outcome is a finding with its interval. Low or High is 0 if the interval is open there.
type Outcome struct {
	Finding   Finding
	Low, High int64
}

// Search describes a search.
type Search struct {
	From, To   int64   // the rates that may be probed; a To of 0 is no limit
	Width      float64 // of the interval, as a share of its lower end
	Confidence float64 // the least probability that the capacity is in the interval
	Probes     int     // the greatest number of probes
}

// Check returns an error if the search is not possible.
func (s Search) Check() error {
	rates := s.From >= 1 && (s.To == 0 || s.To > s.From)
	shares := s.Width >= 0.01 && s.Width <= 1 && s.Confidence >= 0.5 && s.Confidence < 1
	if !rates || !shares || s.Probes < 1 {
		return errors.New("allowed are --from from 1 on, --to above it, --width 1% to 100%, " +
			"--confidence 50% to 99.9%, --probes from 1 on")
	}
	return nil
}

const (
	// insists is the number of runs of a probe that the load generator spoils. The last one counts
	// as not met.
	insists = 3
	// rounds is the number of intervals that are tried, each wider than the one before.
	rounds = 4
	// unlimited is the highest rate if no limit is given.
	unlimited = 1_000_000_000_000
	// gain and loss are the factors of a bet at even odds that is won and lost. Below hopeless an
	// end is given up.
	gain, loss, hopeless = 1.8, 0.2, 0.1
)

var errProbes = errors.New("the probes ended")

// searching is a search that runs.
type searching struct {
	Search
	Outcome
	probe Probe
	made  int
}

// Probe runs at a rate.
type Probe func(ctx context.Context, rate int64) (Answer, error)

// Run searches. An error of the probe ends it.
func (s Search) Run(ctx context.Context, probe Probe) (Outcome, error) {
	if err := s.Check(); err != nil {
		return Outcome{}, err
	}
	if s.To == 0 {
		s.To = unlimited
	}
	r := &searching{Search: s, probe: probe}
	at, ratio := s.From, 2.0
	for round := range rounds {
		err := r.bracket(ctx, at, ratio)
		if err == nil {
			r.widen(round)
			at, err = r.confirm(ctx, round)
		}
		if errors.Is(err, errProbes) {
			return r.Outcome, nil
		}
		if err != nil || at == 0 {
			return r.Outcome, err
		}
		ratio = 1 + s.Width
	}
	r.Finding = NoSteadyState
	return r.Outcome, nil
}

// ask probes a rate until the load generator does not spoil the probe.
func (r *searching) ask(ctx context.Context, rate int64) (answer Answer, err error) {
	for range insists {
		if r.made == r.Probes {
			return answer, errProbes
		}
		r.made++
		if answer, err = r.probe(ctx, rate); err != nil || answer != Generator {
			return answer, err
		}
	}
	return answer, nil
}

// bracket moves away from a rate in growing steps until the answer changes, and then halves the
// interval. At a limit the interval stays open.
func (r *searching) bracket(ctx context.Context, at int64, ratio float64) error {
	r.Low, r.High = 0, 0
	for r.Low == 0 || r.High == 0 {
		answer, err := r.ask(ctx, at)
		if err != nil {
			return err
		}
		var next int64
		if answer == Met {
			r.Low = at
			next = min(r.To, max(at+1, int64(math.Round(float64(at)*ratio))))
		} else {
			r.High = at
			next = max(r.From, min(at-1, int64(math.Round(float64(at)/ratio))))
		}
		if next == at {
			return nil
		}
		at, ratio = next, min(2, ratio*ratio)
	}
	for r.High-r.Low > 1 && float64(r.High) > float64(r.Low)*(1+r.Width/2) {
		middle := int64(math.Round(math.Sqrt(float64(r.Low) * float64(r.High))))
		answer, err := r.ask(ctx, middle)
		if err != nil {
			return err
		}
		if answer == Met {
			r.Low = middle
		} else {
			r.High = middle
		}
	}
	return nil
}

// widen moves the ends of the interval apart: to the width that is asked for in the first round.
func (r *searching) widen(round int) {
	if r.Low == 0 || r.High == 0 {
		return
	}
	margin := math.Pow(1+r.Width, 0.24+float64(round/2))
	r.Low = max(r.From, int64(math.Round(float64(r.Low)/margin)))
	r.High = min(r.To, int64(math.Round(float64(r.High)*margin)))
}

// end is an end of the interval, with the capital of bets that its probes answer as expected.
type end struct {
	rate    int64
	met     bool
	capital float64
	probes  int
	spoilt  int // of the probes, by the load generator
}

// confirm probes both ends in turn until chance alone would not give their answers. It returns the
// end that fails; 0 if both are confirmed.
func (r *searching) confirm(ctx context.Context, round int) (failed int64, err error) {
	enough := 4 * math.Pow(2, float64(round)) / (1 - r.Confidence)
	low, high := &end{rate: r.Low, met: true, capital: 1}, &end{rate: r.High, capital: 1}
	for _, e := range []*end{low, high} {
		if e.rate == 0 {
			e.capital = enough // the interval is open
		}
	}
	for low.capital < enough || high.capital < enough {
		for _, e := range []*end{low, high} {
			if e.capital >= enough {
				continue
			}
			answer, err := r.ask(ctx, e.rate)
			if err != nil {
				return 0, err
			}
			e.probes++
			if answer == Generator {
				e.spoilt++
			}
			if (answer == Met) == e.met {
				e.capital *= gain
			} else {
				e.capital *= loss
			}
			if e.capital < hopeless {
				return e.rate, nil
			}
		}
	}
	switch {
	case 2*high.spoilt > high.probes:
		r.Finding = GeneratorFirst
	case r.High == 0:
		r.Finding = NotReached
	case r.Low == 0:
		r.Finding = TooLittle
	default:
		r.Finding = Found
	}
	return 0, nil
}
