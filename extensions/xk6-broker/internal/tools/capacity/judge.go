package capacity

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Judge reads the answer of a probe from its result, with the reason where it is not Met. An error is a result that no probe can have: then the
// script, or the question, is wrong.
func Judge(r *result.Result, objectives []measure.Objective) (answer Answer, why string, err error) {
	led := r.Led()
	open := false
	for i := range led.Topics {
		if led.Topics[i].ClosedLoop {
			return Missed, "", fmt.Errorf("%s: messages were sent in a closed loop, which has no rate: the script must send by a schedule, as with the executor "+
				"open-arrival-rate or produce({ rate })", led.Topics[i].Topic)
		}
		open = open || led.Topics[i].OpenLoop
	}
	if !open {
		return Missed, "", fmt.Errorf("nothing was sent by a schedule: %s", reason.Codes(r.Verdict.Invalid()))
	}
	if why, ok := verdict.Overtaxed(&r.Verdict); ok {
		return Generator, reason.Text(why), nil
	}
	for _, o := range objectives {
		if answer, why := judge(r, o); answer != Met {
			return answer, why, nil
		}
	}
	if !r.Verdict.Latencies || !r.Verdict.Account { // and the generator was not at its end
		return Missed, "not valid: " + reason.Codes(r.Verdict.Invalid()), nil
	}
	if worse, ok := verdict.Worsening(r); ok {
		return Unsteady, reason.Text(worse), nil
	}
	return Met, "", nil
}

// judge tries one objective, which is an upper limit. What speaks against a value has a direction: it decides nothing where the truth may be on
// the other side.
func judge(r *result.Result, o measure.Objective) (Answer, string) {
	v, err := o.Measure.OfRun(r)
	if err != nil {
		answer := Unjudged
		if o.Measure.Unit == "" && !r.Verdict.Account { // what became of messages is not known of this run, and would be of a better one
			answer = Missed
		}
		return answer, fmt.Sprintf("%s cannot be judged: %v", o.Text, err)
	}
	shown := fmt.Sprintf("%s is %s", o.Measure.Label(), o.Measure.Show(v))
	switch low, high := o.Measure.DoubtOfRun(r); {
	case o.Met(v) && low != "": // what failed or never came, which is no fault of the generator
		return Missed, fmt.Sprintf("%s, but %s", shown, low)
	case o.Met(v):
		return Met, ""
	case high != "":
		return Generator, fmt.Sprintf("%s, but %s", shown, high)
	}
	return Missed, shown
}

// CheckObjectives refuses what nothing could meet, and what no capacity can be searched for by.
func CheckObjectives(all []measure.Objective) error {
	if len(all) == 0 {
		return errors.New("no objective: give one, such as 'e2e_latency p99 < 20ms' or 'lost == 0'")
	}
	for i, o := range all {
		switch below, flaw := o.Op == "<" || o.Op == "<=", slices.Contains(measure.Flaws, o.Measure.Name); {
		case o.Measure.Unit != "ns" && !flaw:
			return fmt.Errorf("objective %q: it does not tell whether a rate is too much for the system: name a latency, or one of %s", o.Text, strings.Join(measure.Flaws, ", "))
		case o.Op == "<" && o.Limit == 0, o.Measure.Unit == "ns" && o.Limit == 0:
			return fmt.Errorf("objective %q: nothing can meet it", o.Text)
		case !below && !(flaw && o.Op == "==" && o.Limit == 0):
			return fmt.Errorf("objective %q: it must be an upper limit, with < or <=, or == 0 of a count", o.Text)
		}
		if slices.ContainsFunc(all[:i], func(other measure.Objective) bool { return other.Text == o.Text }) {
			return fmt.Errorf("objective %q is given twice", o.Text)
		}
	}
	return nil
}
