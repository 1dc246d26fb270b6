package result

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
)

// lateness is how late, at a quantile, a latency is by its beginning, by its end, or by either: as many of its values are late by that, if not more. Either
// histogram may be nil. Where as many are late at the beginning as at the end, and are not the same, twice as many are.
//
// The same they are as far as one standstill holds both up: it is longer than the latency, of that value there. Of those that end in a standstill only those
// count that began before it, and those began within that latency: that part of a standstill, whose length is twice what is left of it on average.
func lateness(begin, end *hist.Histogram, q float64, value int64) int64 {
	var most int64
	for _, h := range []*hist.Histogram{begin, end} {
		if h != nil {
			most = max(most, h.Quantile(q))
		}
	}
	if begin == nil || end == nil || begin.Count() == 0 || end.Count() == 0 || q >= 1 {
		return most
	}
	begins, ends := downFrom(begin, most), downFrom(end, most)
	var began, ended, sum float64 // of those that are at least that late: how many, and what they are together
	for len(begins) > 0 || len(ends) > 0 {
		late := int64(0)
		for _, values := range [][]valued{begins, ends} {
			if len(values) > 0 {
				late = max(late, values[0].value)
			}
		}
		if len(begins) > 0 && begins[0].value == late {
			began += begins[0].n
			begins = begins[1:]
		}
		if len(ends) > 0 && ends[0].value == late {
			ended += ends[0].n
			sum += ends[0].n * float64(late)
			ends = ends[1:]
		}
		part := 1.0
		if standstill := 2 * (sum - ended*float64(late)); standstill > float64(value)*ended {
			part = float64(value) * ended / standstill
		}
		if began/float64(begin.Count())+part*ended/float64(end.Count()) > 1-q {
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
