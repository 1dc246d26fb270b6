package capacity

import (
	"math"
	"slices"
)

const (
	// look is after how many probes, each time, it is asked whether the capacity changed; firstLook is when first.
	look, firstLook = 10, 20
	// surely is how much more likely the answers must be with a change than without one, as a logarithm. Twice that is beyond 18 in one of 50,000
	// independent samples (Wilks, 1938); these depend on one another, and are looked at several times.
	surely = 9
)

// changes are by how much the logarithm of the capacity may have changed over all probes.
var changes = []float64{0.05, 0.1, 0.2, 0.4, 0.8, 1.6}

// drifted reports whether the capacity changed while it was searched for: whether the answers are much more likely of one that grew or
// fell steadily, from the first probe to the last, than of one that stayed.
func (s Search) drifted(probes []Probe) bool {
	probes = slices.DeleteFunc(slices.Clone(probes), func(p Probe) bool { return p.Answer == Generator }) // of the system these say nothing
	if len(probes) < firstLook {
		return false
	}
	stayed := s.likelihood(probes, 0)
	for _, change := range changes {
		if max(s.likelihood(probes, change), s.likelihood(probes, -change)) > stayed+surely {
			return true
		}
	}
	return false
}

// likelihood is the logarithm of that of the answers, the greatest that any capacity and slope give them.
func (s Search) likelihood(probes []Probe, change float64) float64 {
	logs := make([]float64, len(probes))
	low, high := math.Inf(1), math.Inf(-1)
	for i, p := range probes {
		logs[i] = math.Log(float64(p.Rate))
		low, high = min(low, logs[i]), max(high, logs[i])
	}
	margin := s.Width + math.Abs(change)/2
	most := math.Inf(-1)
	for theta := low - margin; theta <= high+margin; theta += s.Width / 4 {
		for _, slope := range s.slopes() {
			sum, product := 0.0, 1.0 // a logarithm of each factor takes most of the time
			for i, p := range probes {
				then := theta + change*(float64(i)/float64(len(probes)-1)-0.5)
				expected := met(logs[i], then, slope)
				if p.Answer != Met {
					expected = 1 - expected
				}
				if product *= expected; product < 1e-100 {
					sum, product = sum+math.Log(product), 1
				}
			}
			most = max(most, sum+math.Log(product))
		}
	}
	return most
}
