package result

import (
	"cmp"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// lateness is how late, at a quantile, a latency is by its beginning, by its end, or by either: as many of its values are late by that, if not more. Either
// histogram may be nil. Where as many are late at the beginning as at the end, and are not the same, twice as many are.
//
// The same they are as far as one standstill holds both up: it is longer than the latency, of that value there. Of those that end in a standstill only those
// count that began before it, and those began within that latency: that part of a standstill, whose length is twice what is left of it on average.
//
// A latency may have several ends, each as late as the others, with a part of it before each: a request is received, and its reply is.
func lateness(begin, end *hist.Histogram, ends int, q float64, value int64) int64 {
	begin, end = cmp.Or(begin, &hist.Histogram{}), cmp.Or(end, &hist.Histogram{})
	most := max(begin.Quantile(q), end.Quantile(q))
	if end.Count() == 0 || q >= 1 {
		return most
	}
	if begin.Count() == 0 {
		most = 0 // nothing is sent in a standstill
	}
	leg := float64(value) / float64(ends)
	begins, stops := downFrom(begin, most), downFrom(end, most)
	var began, ended, sum float64 // of those that are at least that late: how many, and what they are together
	for len(begins) > 0 || len(stops) > 0 {
		late := int64(0)
		for _, values := range [][]valued{begins, stops} {
			if len(values) > 0 {
				late = max(late, values[0].value)
			}
		}
		if len(begins) > 0 && begins[0].value == late {
			began += begins[0].n
			begins = begins[1:]
		}
		if len(stops) > 0 && stops[0].value == late {
			ended += stops[0].n
			sum += stops[0].n * float64(late)
			stops = stops[1:]
		}
		part := float64(ends)
		if standstill := 2 * (sum - ended*float64(late)); standstill > leg*ended {
			part *= leg * ended / standstill
		}
		if began/float64(max(1, begin.Count()))+part*ended/float64(end.Count()) > 1-q {
			return max(most, late)
		}
	}
	return most
}

type valued struct {
	value int64
	n     float64
}

// downFrom lists a histogram's values from the greatest down to a least one.
func downFrom(h *hist.Histogram, least int64) (all []valued) {
	for value, n := range h.All() {
		if value > least {
			all = append(all, valued{value, float64(n)})
		}
	}
	slices.Reverse(all)
	return all
}
