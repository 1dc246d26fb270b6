package verdict

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

func judgeProcesses(v *result.Verdict, parts []Part) {
	(&merger{parts: parts, result: &result.Result{}}).judgeLoads(&judge{Verdict: v})
}

func TestSegmentsThatAreNotOneTestAreNamed(t *testing.T) {
	const thirds = "0,1/3,2/3,1"
	whole := []string{"a 0:1/3 " + thirds, "b 1/3:2/3 " + thirds, "c 2/3:1 " + thirds}
	for name, c := range map[string]struct {
		parts []string
		want  []string
	}{
		"whole":            {whole, nil},
		"in another order": {[]string{whole[2], whole[0], whole[1]}, nil},
		"not divided":      {[]string{"a", "b"}, nil},
		"one besides":      {append(slices.Clone(whole), "d"), nil},
		"twice":            {append(slices.Clone(whole), "other 1/3:2/3 "+thirds), []string{"why=load names=b_and_other"}},
		"a gap":            {[]string{whole[0], whole[2]}, []string{"why=segments detail=0:1/3,_2/3:1"}},
		"overlapping":      {[]string{"a 0:1/2 0,1/2,1", "b 1/3:1 0,1/3,1"}, []string{"why=load names=a_and_b"}},
		"one in another":   {[]string{"a 0:1 0,1", "b 1/3:2/3 " + thirds}, []string{"why=load names=a_and_b"}},
	} {
		var parts []Part
		for _, text := range c.parts {
			words := strings.Fields(text)
			r := &result.Result{Name: words[0]}
			if len(words) > 1 {
				r.Segment = &result.Segment{Of: words[1], Sequence: words[2]}
			}
			parts = append(parts, Part{Result: r})
		}
		var v result.Verdict
		judgeProcesses(&v, parts)
		if len(v.Reasons) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, reasontest.Codes(v.Reasons), c.want)
			continue
		}
		for i, want := range c.want {
			if !reasontest.Has(v.Reasons[i:i+1], "invalid processes-differ "+want) {
				t.Errorf("%s: %q, want %q", name, reasontest.Codes(v.Reasons[i:i+1]), want)
			}
		}
	}
}

// A process that had nothing of a scenario, or no name that it shares with the others, speaks against its result, and so against the whole.
func TestWhatAProcessHadNoPartOfSpeaksAgainstIt(t *testing.T) {
	r := &result.Result{Segment: &result.Segment{Of: "1/3:2/3", Sequence: "0,1/3,2/3,1", Idle: []string{"produce"}, Nameless: true}}
	Judge(r, Circumstances{})
	for _, want := range []string{"load-incomplete why=idle scenario=produce segment=1/3:2/3", "processes-differ why=no-run"} {
		if !reasontest.Has(r.Verdict.Invalid(), want) {
			t.Errorf("no %q in %q", want, reasontest.Codes(r.Verdict.Reasons))
		}
	}
}

// difference returns what processes differ in: the zero reason where it is nothing, or more than one thing.
func difference(parts []Part) (r reason.Reason) {
	var v result.Verdict
	if judgeProcesses(&v, parts); len(v.Reasons) == 1 {
		return v.Reasons[0]
	}
	return r
}

// Processes of one test have one script: what each sends is its part of one load.
func TestProcessesOfDifferentLoads(t *testing.T) {
	part := func(name, segment string, s result.Scenario) Part {
		s.Name = "send"
		return Part{Result: &result.Result{Name: name, Segment: &result.Segment{Of: segment, Sequence: "0,1/2,1"}, Test: result.Test{Scenarios: []result.Scenario{s}}}}
	}
	of := func(rate any) result.Scenario {
		return result.Scenario{Executor: "open-arrival-rate", Exec: "send", VUs: 6, Options: map[string]any{"rate": rate, "duration": "4s"}}
	}
	closed, bare := of(100.0), of(100.0)
	closed.Executor, bare.Options = "constant-vus", map[string]any{"duration": "4s"}
	for name, c := range map[string]struct {
		other result.Scenario
		want  string
	}{
		"alike":    {of(100.0), ""},
		"another":  {of(300.0), "load"},
		"executor": {closed, "load"},
		"none":     {result.Scenario{Executor: "gone"}, "load"},
		"left out": {bare, "load"},
	} {
		parts := []Part{part("a", "0:1/2", of(100.0)), part("b", "1/2:1", c.other)}
		if c.other.Executor == "gone" {
			parts[1].Result.Test.Scenarios = nil
		}
		if got := difference(parts); got.Word("why") != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Processes that did not wait for each other, and began apart, did not send the load that was asked for.
func TestProcessesThatBeganApart(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	part := func(name, segment string, after time.Duration, clock *result.Clock, executor string) Part {
		return Part{Result: &result.Result{
			Name: name, Started: began.Add(after), Seconds: 6, Segment: &result.Segment{Of: segment, Sequence: "0,1/2,1"}, Clock: clock,
			Test: result.Test{Scenarios: []result.Scenario{{Name: "send", Executor: executor}}},
		}}
	}
	pair := func(later time.Duration, clock *result.Clock, executor string) []Part {
		return []Part{part("a", "0:1/2", 0, clock, executor), part("b", "1/2:1", later, clock, executor)}
	}
	for name, c := range map[string]struct {
		parts []Part
		want  string
	}{
		"two seconds":                    {pair(2040*time.Millisecond, nil, "open-arrival-rate"), "why=begin names=a_and_b apart=2.04"},
		"next to nothing":                {pair(900*time.Millisecond, nil, "open-arrival-rate"), ""},
		"with a coordinator":             {pair(3*time.Second, &result.Clock{}, "open-arrival-rate"), ""},
		"arrivals that wait for nothing": {pair(3*time.Second, &result.Clock{}, "constant-arrival-rate"), "why=begin names=a_and_b apart=3"},
	} {
		if got := difference(c.parts); (got.Code != "") != (c.want != "") || c.want != "" && !reasontest.Has([]reason.Reason{got}, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
