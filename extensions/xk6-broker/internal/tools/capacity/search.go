// Package capacity searches for the greatest rate that a system meets its objectives at: an interval that has it with a stated confidence. It
// knows nothing of what a probe is; docs/sweeps-and-capacity.md says why the confidence holds.
package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
)

// Answer is what one probe, a run at one rate, says of the system.
type Answer uint8

// Answers.
const (
	Met       Answer = iota // every objective holds, in a steady state
	Missed                  // an objective does not
	Unsteady                // they hold, but not for long: what was measured changed while the probe went on
	Generator               // nothing is known of the system: the load generator, or its machine, made the numbers
	Unjudged                // an objective cannot be judged at all, as by too few messages: no answer in a search
)

// String is what people call the answer.
func (a Answer) String() string {
	return [...]string{"met", "missed", "not steady", "generator", "not judged"}[a]
}

// Probe is a rate that was tried.
type Probe struct {
	Rate   int64
	Answer Answer
	// Expected is how probable it was, by all probes before this one, that its answer is Met.
	Expected float64
}

// Finding is what a search found.
type Finding uint8

// Findings.
const (
	Undecided      Finding = iota // the probes ended before the interval was as narrow as asked for
	Found                         // the capacity is between Low and High
	TooLittle                     // not even the lowest rate meets the objectives
	NotReached                    // the highest rate that is allowed still meets them
	GeneratorFirst                // the load generator's own capacity is between Low and High, and the system's is not known
	NoSteadyState                 // there is no one capacity: the system changed while it was searched for
)

// Outcome is the end of a search.
type Outcome struct {
	Finding   Finding
	Low, High int64 // High is 0 where nothing bounds it from above, and Low where nothing does from below
	Probes    []Probe
}

// Search says what is searched for.
type Search struct {
	From, To   int64   // the rates that may be probed, 1 or more; a To of 0 is no limit
	Width      float64 // how wide the interval may be, of its lower end: 0.05 is 5 %
	Confidence float64 // how probable it is, at least, that the interval has the capacity: 0.95
	Probes     int     // how many there may be
}

// Check says what is wrong with the question.
func (s Search) Check() error {
	switch {
	case s.From < 1:
		return fmt.Errorf("the lowest rate, %d, must be at least 1", s.From)
	case s.To != 0 && s.To <= s.From:
		return fmt.Errorf("the highest rate, %d, must be more than the lowest, %d", s.To, s.From)
	case !(s.Width >= 0.01 && s.Width <= 1):
		return fmt.Errorf("a width of %g %% is not one from 1 %% to 100 %%", 100*s.Width)
	case !(s.Confidence >= 0.5 && s.Confidence < 1):
		return fmt.Errorf("a confidence of %g %% is not one from 50 %% to less than 100 %%", 100*s.Confidence)
	case s.Probes < 1:
		return errors.New("a search takes at least one probe")
	}
	return nil
}

// insists is how often in a row a probe must say nothing of the system before that counts: a machine is busy at times, at any rate.
const insists = 3

// Run searches. The probe's error ends it, with what was found until then.
func (s Search) Run(ctx context.Context, probe func(ctx context.Context, rate int64) (Answer, error)) (Outcome, error) {
	if err := s.Check(); err != nil {
		return Outcome{}, err
	}
	var probes []Probe
	for made := 0; ; {
		o := s.Judge(probes)
		if o.Finding != Undecided || made >= s.Probes {
			return o, nil
		}
		next := s.Next(probes)
		next.Answer = Generator
		for again := 0; again < insists && next.Answer == Generator; again++ {
			var err error
			if next.Answer, err = probe(ctx, next.Rate); err != nil {
				return o, err
			}
			made++
		}
		probes = append(probes, next)
	}
}

// Judge says what is known by some probes, in the order in which they were made.
func (s Search) Judge(probes []Probe) Outcome {
	o := s.decide(probes)
	if n := len(probes); (o.Finding != Undecided || n%look == 0) && s.drifted(probes) {
		o.Finding = NoSteadyState
	}
	return o
}

func (s Search) decide(probes []Probe) Outcome {
	o := s.outcome(probes, of(probes, false))
	if o.Finding != Undecided {
		return o
	}
	if all := s.outcome(probes, of(probes, true)); all.Finding == Found || all.Finding == TooLittle {
		if all.blame(Generator) {
			all.Finding = GeneratorFirst
			return all
		}
	}
	return o
}

// outcome reads an answer from a confidence set.
func (s Search) outcome(probes []Probe, e evidence) Outcome {
	o := Outcome{Probes: probes}
	var ok bool
	if o.Low, o.High, ok = e.interval(1 - s.Confidence); !ok {
		o.Finding = NoSteadyState
		return o
	}
	switch {
	case o.High != 0 && o.High <= s.From:
		if o.Finding = TooLittle; o.blame(Unsteady) {
			o.Finding = NoSteadyState
		}
	case s.To != 0 && o.Low >= s.To:
		o.Finding = NotReached
	case o.Low != 0 && o.High != 0 && s.narrow(o.Low, o.High):
		o.Finding = Found
	}
	return o
}

// narrow reports whether two rates are as close as was asked for, or as whole numbers can be.
func (s Search) narrow(low, high int64) bool {
	return high-low <= 1 || float64(high-low) <= s.Width*float64(low)
}

// blame reports whether most of the probes that were not met at the interval or above it have this answer.
func (o Outcome) blame(a Answer) bool {
	all, these := 0, 0
	for _, p := range o.Probes {
		if p.Answer != Met && p.Rate >= o.Low {
			all++
			if p.Answer == a {
				these++
			}
		}
	}
	return 2*these > all
}

// Next chooses the next rate: one of the two ends that the interval would have if it were around the rate that is now believed to be
// the capacity, that of which less is known.
func (s Search) Next(probes []Probe) Probe {
	if len(probes) == 0 {
		return s.At(nil, s.From)
	}
	b := s.believe(probes)
	rates := s.rates(b.top)
	low, high := s.window(rates, b.median())
	rate := rates[low]
	if e := of(probes, true); high == 0 || e.above(rates[high]) < e.below(rates[low]) {
		rate = rates[high]
	}
	return Probe{Rate: rate, Expected: b.expected(rate)}
}

// At is the probe of a rate that was chosen otherwise, as it is to be expected after some others.
func (s Search) At(probes []Probe, rate int64) Probe {
	return Probe{Rate: rate, Expected: s.believe(probes).expected(rate)}
}

// steps is how many of the rates that may be probed are within an interval of the width that is asked for.
const steps = 4

// rates are those that may be probed: the ends of the interval are among them, so that probes are repeated rather than scattered.
func (s Search) rates(top float64) []int64 {
	var all []int64
	for r := s.From; ; {
		all = append(all, r)
		next := max(r+1, int64(math.Round(float64(r)*math.Pow(1+0.95*s.Width, 1.0/steps)))) // a little less, for they are rounded
		if s.To != 0 && next > s.To {
			if r < s.To {
				all = append(all, s.To)
			}
			return all
		}
		if float64(r) > top {
			return all
		}
		r = next
	}
}

// window gives the ends of the widest interval around a rate that is as narrow as is asked for.
func (s Search) window(rates []int64, around float64) (low, high int) {
	last := len(rates) - 1
	at := sort.Search(last, func(i int) bool { return float64(rates[i]) >= around })
	switch {
	case at == 0:
		return 0, 0
	case float64(rates[last]) < around:
		return last, last
	}
	low, high = at-1, at
	for {
		from, to := low, high
		if low > 0 && s.narrow(rates[low-1], rates[high]) {
			low--
		}
		if high < last && s.narrow(rates[low], rates[high+1]) {
			high++
		}
		if from == low && to == high {
			return low, high
		}
	}
}
