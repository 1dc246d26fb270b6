package result

import (
	"fmt"
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Threshold is a condition that the test sets on a metric, and what became of it.
type Threshold struct {
	Metric string `json:"metric"` // with its tags, as the test names it
	Source string `json:"source"` // the condition
	Decision
}

// Decision is what became of a condition. One that could not be judged has not held.
type Decision struct {
	Held   bool     `json:"held"`
	Judged bool     `json:"judged"` // what was measured tells
	Value  *float64 `json:"value"`  // what was compared: ms of a latency, else the number itself; nil where there is none
	Why    string   `json:"why"`    // it could not be judged
}

// Undecided is the decision on what cannot be judged, and says why.
func Undecided(format string, args ...any) Decision {
	return Decision{Why: fmt.Sprintf(format, args...)}
}

// unless takes a decision back for a reason, where there is one.
func (d Decision) unless(why string) Decision {
	if why != "" {
		d.Judged, d.Held, d.Why = false, false, why
	}
	return d
}

// AddThreshold keeps a decided threshold with the result. One that could not be judged is a reason against the run, and speaks against neither its
// latencies nor its account.
func (r *Result) AddThreshold(t Threshold) {
	r.Thresholds = append(r.Thresholds, t)
	if t.Judged {
		return
	}
	why := reason.New(reason.ThresholdNotJudged, reason.Invalid, reason.Values{"metric": t.Metric, "source": t.Source, "detail": t.Why})
	if !slices.ContainsFunc(r.Verdict.Reasons, why.Same) {
		r.Verdict.Add(why)
	}
}
