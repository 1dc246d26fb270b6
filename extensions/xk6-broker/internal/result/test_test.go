package result

import (
	"fmt"
	"testing"
)

func TestWhatWasAskedOfSeveralProcesses(t *testing.T) {
	produce := Scenario{Name: "produce", Executor: "open-arrival-rate", Options: map[string]any{"rate": 100.0}}
	consume := Scenario{Name: "consume", Executor: "constant-vus"}
	var test Test
	for _, other := range []Test{{"a.js", []Scenario{produce}}, {"a.js", []Scenario{produce, consume}}} {
		test.merge(other)
	}
	if got := fmt.Sprint(test); got != fmt.Sprint(Test{"a.js", []Scenario{produce, consume}}) {
		t.Error(got)
	}
	checks := mergeChecks(mergeChecks(nil, []Check{{"a", 1, 2}, {"b", 3, 0}}), []Check{{"b", 4, 1}, {"c", 1, 1}})
	if got := fmt.Sprint(checks); got != "[{a 1 2} {b 7 1} {c 1 1}]" {
		t.Error(got)
	}
}
