package result

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"

// Verdict reports whether the numbers of a run are reliable, and why not.
type Verdict struct {
	Valid     bool            `json:"valid"`
	Of        string          `json:"of,omitempty"`     // the phase whose latencies it judges; "" for the whole run
	UpTo      float64         `json:"upTo,omitempty"`   // the quantile up to which every latency is reliable; 0 if all that is supported is
	Except    string          `json:"except,omitempty"` // a latency that is not reliable because of two clocks
	Latencies bool            `json:"latencies"`        // no invalid reason speaks against its latencies
	Account   bool            `json:"account"`          // no invalid reason speaks against its account
	Reasons   []reason.Reason `json:"reasons"`
	Beliefs   []Belief        `json:"beliefs"` // how far each latency is reliable
}

// Belief is how far a latency is reliable. If more than samples limits it, a reason
// [reason.PercentileNotReliable] of the topic names the limit.
type Belief struct {
	Topic string  `json:"topic"`
	Label string  `json:"label"` // the latency, as a reader calls it
	UpTo  float64 `json:"upTo"`  // the greatest reliable quantile that a result spells out; 0: not even the median
}

// Invalid returns the reasons why the result is not valid.
func (v *Verdict) Invalid() []reason.Reason { return v.at(reason.Invalid) }

// Notes returns the reasons that do not make the result invalid.
func (v *Verdict) Notes() []reason.Reason { return v.at(reason.Note) }

func (v *Verdict) at(level reason.Level) (all []reason.Reason) {
	for _, r := range v.Reasons {
		if r.Level == level {
			all = append(all, r)
		}
	}
	return all
}

// Add adds a reason.
func (v *Verdict) Add(r reason.Reason) {
	v.Reasons = append(v.Reasons, r)
	if r.Level != reason.Invalid {
		return
	}
	latencies, account := r.Code.Against()
	v.Valid, v.Latencies, v.Account = false, v.Latencies && !latencies, v.Account && !account
}

// Threshold is a condition that the test sets on a metric, and its outcome.
type Threshold struct {
	Metric string `json:"metric"` // with its tags, as in the test
	Source string `json:"source"` // the condition
	Decision
}

// Decision is the outcome of a condition. One that was not judged has not held.
type Decision struct {
	Held   bool     `json:"held"`
	Judged bool     `json:"judged"`
	Value  *float64 `json:"value"` // the compared value: ms of a latency, else the number itself; nil if there is none
	Why    string   `json:"why"`   // why it was not judged
}
