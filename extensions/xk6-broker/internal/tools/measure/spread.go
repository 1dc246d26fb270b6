package measure

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/stationary"
)

// Spread is a measure of runs that repeat a test.
type Spread struct {
	Values            []float64 // of the runs that have one
	Median, Low, High float64
	Unknown           error  // why a run has no value; nil if all have one
	TooLow, TooHigh   string // why a value may be less than the truth, and why more
}

// Spread reads the measure of topics. A nil topic is missing in its run.
func (m Measure) Spread(topics []*result.Topic) Spread {
	return spread(topics, "the topic is not in all of its runs", m.Of, m.Doubt)
}

// SpreadOfRuns reads the measure of runs. A nil run has no result.
func (m Measure) SpreadOfRuns(runs []*result.Result) Spread {
	return spread(runs, "a run has no result, or not the phase", m.OfRun, m.DoubtOfRun)
}

func spread[T any](
	all []*T, missing string, read func(*T) (float64, error), doubt func(*T) (low, high string),
) (s Spread) {
	for _, one := range all {
		if one == nil {
			s.Unknown = errors.New(missing)
			continue
		}
		v, err := read(one)
		if err != nil {
			s.Unknown = cmp.Or(s.Unknown, err)
			continue
		}
		low, high := doubt(one)
		s.TooLow, s.TooHigh = cmp.Or(s.TooLow, low), cmp.Or(s.TooHigh, high)
		s.Values = append(s.Values, v)
	}
	if len(s.Values) > 0 {
		s.Median, s.Low, s.High = stationary.Median(s.Values), slices.Min(s.Values), slices.Max(s.Values)
	}
	return s
}

// ShowSpread returns the median and, of different values, the least and the greatest.
func (m Measure) ShowSpread(s Spread) string {
	if s.Low == s.High {
		return m.Show(s.Median)
	}
	return fmt.Sprintf("%s (%s…%s)", m.Show(s.Median), m.Show(s.Low), m.Show(s.High))
}
