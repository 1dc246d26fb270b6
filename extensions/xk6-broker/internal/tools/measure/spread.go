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
func (m Measure) Spread(topics []*result.Topic) (s Spread) {
	for _, t := range topics {
		if t == nil {
			s.Unknown = errors.New("the topic is not in all of its runs")
			continue
		}
		v, err := m.Of(t)
		low, high := m.Doubt(t)
		s.add(v, low, high, err)
	}
	return s
}

// SpreadOfRuns reads the measure of runs. A nil run has no result.
func (m Measure) SpreadOfRuns(runs []*result.Result) (s Spread) {
	for _, r := range runs {
		if r == nil {
			s.Unknown = errors.New("a run has no result, or not the phase")
			continue
		}
		v, err := m.OfRun(r)
		low, high := m.DoubtOfRun(r)
		s.add(v, low, high, err)
	}
	return s
}

func (s *Spread) add(v float64, low, high string, err error) {
	if err != nil {
		s.Unknown = cmp.Or(s.Unknown, err)
		return
	}
	s.Values = append(s.Values, v)
	s.Median, s.Low, s.High = stationary.Median(s.Values), slices.Min(s.Values), slices.Max(s.Values)
	s.TooLow, s.TooHigh = cmp.Or(s.TooLow, low), cmp.Or(s.TooHigh, high)
}

// ShowSpread returns the median and, of different values, the least and the greatest.
func (m Measure) ShowSpread(s Spread) string {
	if s.Low == s.High {
		return m.Show(s.Median)
	}
	return fmt.Sprintf("%s (%s…%s)", m.Show(s.Median), m.Show(s.Low), m.Show(s.High))
}
