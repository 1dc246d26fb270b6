package capacity

import (
	"math"
	"slices"
)

// evidence is what probes say against each rate being the capacity.
//
// Were it θ, a probe below θ would meet the objectives at least as likely as not, and one above at most. So one bets against θ, before each
// probe, that it will be otherwise, as far as the probes before it make that likely: on a fair coin the capital grows, on average, no more than it shrinks. By
// Ville's inequality it ever becomes 1/α with a probability of α at most, however the rates were chosen and whenever one looks: the rates against
// which it has not have the capacity with a confidence of 1-α.
type evidence struct {
	rates   []int64   // that were probed, ascending
	capital []float64 // logarithm of it, against what is below the first, between each two, and above the last
}

// of is the evidence of probes, in their order. What says nothing of the system is left out, or counts as not met.
func of(probes []Probe, generator bool) evidence {
	var e evidence
	for _, p := range probes {
		e.rates = append(e.rates, p.Rate)
	}
	slices.Sort(e.rates)
	e.rates = slices.Compact(e.rates)
	e.capital = make([]float64, len(e.rates)+1)
	for _, p := range probes {
		if p.Answer == Generator && !generator {
			continue
		}
		odds := p.Expected // of the bet on what happened
		if p.Answer != Met {
			odds = 1 - p.Expected
		}
		at, _ := slices.BinarySearch(e.rates, p.Rate)
		against := e.capital[:at+1] // who bets that it will be met bets against what is below
		if p.Expected < 0.5 {
			against = e.capital[at+1:]
		}
		for i := range against {
			against[i] += math.Log(2 * odds)
		}
	}
	return e
}

// interval is the least one that has all rates that may be the capacity: 0 stands for an end that is open. It is false where there are none.
func (e evidence) interval(alpha float64) (low, high int64, ok bool) {
	possible := func(capital float64) bool { return capital < -math.Log(alpha) }
	first := slices.IndexFunc(e.capital, possible)
	if first < 0 {
		return 0, 0, false
	}
	if first > 0 {
		low = e.rates[first-1]
	}
	last := len(e.capital) - 1
	for !possible(e.capital[last]) {
		last--
	}
	if last < len(e.rates) {
		high = e.rates[last]
	}
	return low, high, true
}

// below is the least that speaks against a capacity below a rate, and above against one above it.
func (e evidence) below(rate int64) float64 {
	at, _ := slices.BinarySearch(e.rates, rate)
	return slices.Min(e.capital[:at+1])
}

func (e evidence) above(rate int64) float64 {
	at, found := slices.BinarySearch(e.rates, rate)
	if found {
		at++
	}
	return slices.Min(e.capital[at:])
}
