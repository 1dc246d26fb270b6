package capacity

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
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
	if why, ok := r.Verdict.Overtaxed(); ok {
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
	if worse, ok := r.Worsening(); ok {
		return Unsteady, reason.Text(worse), nil
	}
	return Met, "", nil
}

// bunched is how often the lateness of a generator may be in a latency: messages that are late are sent together, and at a rate that the system
// keeps they wait for one another for as long again, at most.
const bunched = 2

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
	case high != "" && o.Met(v-bunched*o.Measure.LateOfRun(r)): // without its lateness it might be
		return Generator, fmt.Sprintf("%s, but %s", shown, high)
	}
	if late := float64(r.Bunched()); o.Measure.Unit == "" && slices.Contains(crowded, o.Measure.Name) && o.Met(max(0, v-bunched*late)) {
		return Generator, fmt.Sprintf("%s, but the load generator sent %.0f messages so late that they went in bunches, which the schedule does not have", shown, late)
	}
	if since, ok := o.Measure.SinceSent(); ok && r.VUsAwaited() {
		own, err := since.OfRun(r)
		lag, unknown := measure.Latency("schedule_lag", o.Measure.Stat)
		before, none := lag.OfRun(r)
		if errors.Join(err, unknown, none) == nil && o.Met(own) && before > v/2 { // and it was not the consumers that kept them
			return Generator, fmt.Sprintf("%s, but only %s from when messages were sent: they waited for VUs, which the script kept busy, and not the system: give it more (preAllocatedVUs, maxVUs)",
				shown, o.Measure.Show(own))
		}
	}
	return Missed, shown
}

// crowded are the flaws that bunches make.
var crowded = []string{"lost", "undelivered", "redelivered", "errors"}

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
