package capacity

import (
	"maps"
	"math"
	"slices"
)

// belief is how probable each rate is as the capacity. It chooses the rates to probe and how much to bet; the interval is right though the belief be wrong.
//
// A probe at x is met with the probability λ/2 + (1-λ)/(1+(x/θ)^(1/s)): half of the time at the capacity θ, more often the further below. How
// much further, s, is estimated too, and some probes, λ, end by accident: Kontsevich and Tyler, 1999, who so learn what people can see.
type belief struct {
	top     float64     // the greatest rate that is thought of
	at      []float64   // logarithms of θ
	slopes  []float64   // s
	weights [][]float64 // by slope, then by θ; their sum is 1
}

const (
	// lapse is the share of the probes whose answer has nothing to do with their rate.
	lapse = 0.1
	// reach is how much further than what was probed the capacity is looked for: so the rate doubles until a probe is not met.
	reach = 4
	// unthinkable is the greatest rate that is looked for where no limit is given.
	unthinkable = 1e12
)

// slopes are those that are thought of.
func (s Search) slopes() (all []float64) {
	for _, share := range []float64{1. / 16, 1. / 6, 1. / 2, 1.5} {
		all = append(all, share*s.Width)
	}
	return all
}

func (s Search) believe(probes []Probe) belief {
	highest := s.From
	counts := map[int64]*[2]float64{} // by rate: how many were met, and were not
	for _, p := range probes {
		highest = max(highest, p.Rate)
		if counts[p.Rate] == nil {
			counts[p.Rate] = &[2]float64{}
		}
		if p.Answer == Met {
			counts[p.Rate][0]++
		} else {
			counts[p.Rate][1]++
		}
	}
	b := belief{top: min(reach*float64(highest), unthinkable), slopes: s.slopes()}
	if s.To != 0 {
		b.top = min(b.top, 2*float64(s.To))
	}
	for u, step := math.Log(float64(s.From)/2), math.Log1p(s.Width)/5; u <= math.Log(b.top); u += step {
		b.at = append(b.at, u)
	}
	rates := slices.Sorted(maps.Keys(counts)) // a sum of floats depends on its order
	for _, slope := range b.slopes {
		weights := make([]float64, len(b.at))
		for _, r := range rates {
			u, n := math.Log(float64(r)), counts[r]
			for k, theta := range b.at {
				p := met(u, theta, slope)
				weights[k] += n[0]*math.Log(p) + n[1]*math.Log(1-p)
			}
		}
		b.weights = append(b.weights, weights)
	}
	b.normalise()
	return b
}

// normalise makes probabilities of logarithms.
func (b belief) normalise() {
	most, sum := math.Inf(-1), 0.0
	for _, w := range b.weights {
		most = max(most, slices.Max(w))
	}
	for _, w := range b.weights {
		for k := range w {
			w[k] = math.Exp(w[k] - most)
			sum += w[k]
		}
	}
	for _, w := range b.weights {
		for k := range w {
			w[k] /= sum
		}
	}
}

// met is how probable it is that a probe is met, by logarithms of its rate and of the capacity.
func met(u, theta, slope float64) float64 {
	return lapse/2 + (1-lapse)/(1+math.Exp((u-theta)/slope))
}

// expected is how probable it is that a probe at a rate is met.
func (b belief) expected(rate int64) (p float64) {
	u := math.Log(float64(rate))
	for i, w := range b.weights {
		for k, weight := range w {
			p += weight * met(u, b.at[k], b.slopes[i])
		}
	}
	return p
}

// median is the rate that the capacity is as likely below as above.
func (b belief) median() float64 {
	sum := 0.0
	for k, u := range b.at {
		for _, w := range b.weights {
			sum += w[k]
		}
		if sum >= 0.5 {
			return math.Exp(u)
		}
	}
	return b.top
}
