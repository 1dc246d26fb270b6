package result

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason/reasontest"
)

func judgeProcesses(v *Verdict, parts []Part) {
	(&merger{parts: parts, result: &Result{}}).judgeLoads(v)
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
		"twice":            {[]string{whole[0], whole[1], "other 1/3:2/3 " + thirds, whole[2]}, []string{"why=twice names=b_and_other detail=the_execution_segment_1/3:2/3"}},
		"a gap":            {[]string{whole[0], whole[2]}, []string{"why=segment-missing detail=1/3:2/3"}},
		"no first":         {whole[1:], []string{"why=segment-missing detail=0:1/3"}},
		"no last":          {whole[:2], []string{"why=segment-missing detail=2/3:1"}},
		"overlapping": {[]string{"a 0:1/2 0,1/2,1", "b 1/3:1 0,1/3,1"}, []string{
			"why=load names=a_and_b", "why=segment-missing detail=1/2:1",
		}},
		"one in another": {[]string{"a 0:1 0,1", "b 1/3:2/3 " + thirds}, []string{"why=load names=a_and_b"}},
		"one name":       {[]string{"a 0:1/2 0,1/2,1", "a 1/2:1 0,1/2,1"}, []string{"why=twice detail=a"}},
		"started twice":  {[]string{"a 0:1/2 0,1/2,1", "b 1/2:1 0,1/2,1", "b 1/2:1 0,1/2,1"}, []string{"why=twice detail=b", "why=twice names=b_and_b detail=the_execution_segment_1/2:1"}},
		"damaged":        {[]string{"a 0:1/2 0,1/2,1", "b 1/2 0,1/2,1"}, []string{"why=segment-missing detail=1/2:1"}},
	} {
		var parts []Part
		for _, text := range c.parts {
			words := strings.Fields(text)
			r := &Result{Name: words[0]}
			if len(words) > 1 {
				r.Segment = &Segment{Of: words[1], Sequence: words[2]}
			}
			parts = append(parts, Part{Result: r})
		}
		var v Verdict
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
	r := &Result{Segment: &Segment{Of: "1/3:2/3", Sequence: "0,1/3,2/3,1", Idle: []string{"produce"}, Nameless: true}}
	r.Judge(Circumstances{})
	for _, want := range []string{"load-incomplete why=idle scenario=produce segment=1/3:2/3", "processes-differ why=no-run"} {
		if !reasontest.Has(r.Verdict.Invalid(), want) {
			t.Errorf("no %q in %q", want, reasontest.Codes(r.Verdict.Reasons))
		}
	}
}

// difference returns what processes differ in: the zero reason where it is nothing, or more than one thing.
func difference(parts []Part) (r reason.Reason) {
	var v Verdict
	if judgeProcesses(&v, parts); len(v.Reasons) == 1 {
		return v.Reasons[0]
	}
	return r
}

// Processes of one test have one script: what each sends is its part of one load.
func TestProcessesOfDifferentLoads(t *testing.T) {
	part := func(name, segment string, s Scenario) Part {
		s.Name = "send"
		return Part{Result: &Result{Name: name, Segment: &Segment{Of: segment, Sequence: "0,1/2,1"}, Test: Test{Scenarios: []Scenario{s}}}}
	}
	of := func(rate any) Scenario {
		return Scenario{Executor: "open-arrival-rate", Exec: "send", VUs: 6, Options: map[string]any{"rate": rate, "duration": "4s"}}
	}
	closed, bare := of(100.0), of(100.0)
	closed.Executor, bare.Options = "constant-vus", map[string]any{"duration": "4s"}
	for name, c := range map[string]struct {
		other Scenario
		want  string
	}{
		"alike":    {of(100.0), ""},
		"another":  {of(300.0), "scenario send is map[duration:4s rate:100] in the one, and map[duration:4s rate:300] in the other"},
		"executor": {closed, "the one has 1 scenarios with a rate, and the other 0"},
		"none":     {Scenario{Executor: "gone"}, "the one has 1 scenarios with a rate, and the other 0"},
		"left out": {bare, "scenario send is map[duration:4s rate:100] in the one, and map[duration:4s] in the other"},
	} {
		parts := []Part{part("a", "0:1/2", of(100.0)), part("b", "1/2:1", c.other)}
		if c.other.Executor == "gone" {
			parts[1].Result.Test.Scenarios = nil
		}
		if got := difference(parts); got.Word("detail") != c.want || c.want != "" && got.Word("why") != "load" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A loop that processes divide is one, and has one load.
func TestProcessesWithDifferentLoops(t *testing.T) {
	loop := func(rate any, also ...string) map[string]any {
		options := map[string]any{"rate": rate, "duration": "4s", "producers": 1.0, Divided: true}
		for _, name := range also {
			options[name] = "this"
		}
		return options
	}
	closed := map[string]any{"duration": "4s", "producers": 1.0} // each process has all of it
	part := func(name, segment string, loops ...map[string]any) Part {
		return Part{Result: &Result{
			Name: name, Segment: &Segment{Of: segment, Sequence: "0,1/2,1"}, Topics: []Topic{{Topic: "jobs", Options: Uses{"produce": loops}}},
		}}
	}
	for name, c := range map[string]struct {
		one, other []map[string]any
		want       string
	}{
		"alike":    {[]map[string]any{loop(100.0), loop(5.0)}, []map[string]any{loop(5.0), loop(100.0)}, ""},
		"another":  {[]map[string]any{loop(100.0)}, []map[string]any{loop(300.0)}, "their produce() loops to jobs have different options"},
		"more":     {[]map[string]any{loop(100.0)}, []map[string]any{loop(100.0, "headers")}, "their produce() loops to jobs have different options"},
		"one more": {[]map[string]any{loop(100.0), loop(7.0)}, []map[string]any{loop(100.0)}, "their produce() loops to jobs have different options"},
		"whole":    {[]map[string]any{loop(100.0), closed}, []map[string]any{loop(100.0)}, ""},
	} {
		got := difference([]Part{part("a", "0:1/2", c.one...), part("b", "1/2:1", c.other...)})
		if got.Word("detail") != c.want || c.want != "" && got.Word("names") != "a and b" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Processes without segments have the whole load each.
func TestProcessesThatEachRanTheWhole(t *testing.T) {
	part := func(segment *Segment) Part {
		return Part{Result: &Result{Segment: segment, Test: Test{Scenarios: []Scenario{{Name: "send", Executor: "open-arrival-rate"}, {Name: "consume", Executor: "consumers"}}}}}
	}
	for want, parts := range map[string][]Part{"": {part(nil)}, "count=2 detail=send": {part(nil), part(nil)}} {
		var v Verdict
		judgeProcesses(&v, parts)
		if len(v.Reasons) != min(1, len(want)) || want != "" && !reasontest.Has(v.Notes(), "processes-differ why=repeated "+want) {
			t.Errorf("%q: %q", want, reasontest.Codes(v.Reasons))
		}
	}
}

// Processes are called by the numbers of their segments, whoever began first.
func TestNumbersOfProcesses(t *testing.T) {
	part := func(of string) Part {
		if of == "" {
			return Part{Result: &Result{}}
		}
		return Part{Result: &Result{Segment: &Segment{Of: of, Sequence: "0,1/3,2/3,1"}}}
	}
	for want, parts := range map[string][]Part{
		"process 2, process 3, process 1": {part("1/3:2/3"), part("2/3:1"), part("0:1/3")},
		"process 3, process 1":            {part("2/3:1"), part("0:1/3")},
		"process 1, process 2":            {part("1/3:2/3"), part("")},
	} {
		var got []string
		m := &merger{parts: parts}
		for i := range parts {
			got = append(got, m.process(i))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q, want %s", got, want)
		}
	}
}

// Processes that did not wait for each other, and began apart, did not send the load that was asked for.
func TestProcessesThatBeganApart(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	part := func(name, segment string, after time.Duration, clock *Clock, executor string) Part {
		return Part{Result: &Result{
			Name: name, Started: began.Add(after), Seconds: 6, Segment: &Segment{Of: segment, Sequence: "0,1/2,1"}, Clock: clock,
			Test: Test{Scenarios: []Scenario{{Name: "send", Executor: executor}}},
		}}
	}
	pair := func(later time.Duration, clock *Clock, executor string) []Part {
		return []Part{part("a", "0:1/2", 0, clock, executor), part("b", "1/2:1", later, clock, executor)}
	}
	for name, c := range map[string]struct {
		parts []Part
		want  string
	}{
		"two seconds":                    {pair(2040*time.Millisecond, nil, "open-arrival-rate"), "why=begin names=a_and_b apart=2.04"},
		"next to nothing":                {pair(900*time.Millisecond, nil, "open-arrival-rate"), ""},
		"with a coordinator":             {pair(3*time.Second, &Clock{}, "open-arrival-rate"), ""},
		"arrivals that wait for nothing": {pair(3*time.Second, &Clock{}, "constant-arrival-rate"), "why=begin names=a_and_b apart=3"},
	} {
		if got := difference(c.parts); (got.Code != "") != (c.want != "") || c.want != "" && !reasontest.Has([]reason.Reason{got}, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
