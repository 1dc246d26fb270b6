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

// Judge returns the answer of a probe, and the reason if it is not Met. An error means that no
// probe of the script can answer.
func Judge(r *result.Result, objectives []measure.Objective) (answer Answer, why string, err error) {
	topics := r.Led().Topics
	closed := slices.ContainsFunc(topics, func(t result.Topic) bool { return t.ClosedLoop })
	open := slices.ContainsFunc(topics, func(t result.Topic) bool { return t.OpenLoop })
	if closed || !open {
		return Missed, "", errors.New("a closed loop has no rate: the script must send by a schedule, " +
			"as with the executor open-arrival-rate or produce({ rate })")
	}
	if overtaxed, ok := verdict.Overtaxed(&r.Verdict); ok {
		return Generator, reason.Text(overtaxed), nil
	}
	var unknown error
	for _, o := range objectives {
		v, err := o.Measure.OfRun(r)
		if err != nil {
			unknown = fmt.Errorf("%s cannot be judged: %w", o.Text, err)
			continue
		}
		shown := fmt.Sprintf("%s is %s", o.Measure.Label(), o.Measure.Show(v))
		low, high := o.Measure.DoubtOfRun(r)
		switch {
		case o.Met(v) && low != "":
			return Missed, fmt.Sprintf("%s, but %s", shown, low), nil
		case !o.Met(v) && high != "":
			return Generator, fmt.Sprintf("%s, but %s", shown, high), nil
		case !o.Met(v):
			return Missed, shown, nil
		}
	}
	if !r.Verdict.Latencies || !r.Verdict.Account {
		return Missed, "not valid: " + reason.Codes(r.Verdict.Invalid()), nil
	}
	if unknown != nil {
		return Missed, "", unknown
	}
	if worse, ok := verdict.Worsening(r); ok {
		return Missed, reason.Text(worse), nil
	}
	return Met, "", nil
}

// parseObjectives parses objectives, which must be upper limits.
func parseObjectives(texts []string) (all []measure.Objective, err error) {
	for _, text := range texts {
		o, err := measure.ParseObjective(text)
		if err != nil {
			return nil, err
		}
		flaw := slices.Contains(measure.Flaws, o.Measure.Name)
		limit := (o.Op == "<" && o.Limit > 0) || o.Op == "<=" || (o.Op == "==" && o.Limit == 0)
		if !limit || o.Multiple || (o.Measure.Unit != "ns" && !flaw) {
			return nil, fmt.Errorf("objective %q: it must be an upper limit of a latency, or of one of %s",
				text, strings.Join(measure.Flaws, ", "))
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil, errors.New("no objective: give one, such as 'e2e_latency p99 < 20ms' or 'lost == 0'")
	}
	return all, nil
}
