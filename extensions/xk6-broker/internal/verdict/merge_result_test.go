package verdict

import (
	"fmt"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

func TestWhatWasAskedOfSeveralProcesses(t *testing.T) {
	produce := result.Scenario{Name: "produce", Executor: "open-arrival-rate", Options: map[string]any{"rate": 100.0}}
	consume := result.Scenario{Name: "consume", Executor: "constant-vus"}
	m := &merger{result: &result.Result{Environment: map[string]string{}}}
	m.add(&result.Result{
		Test:   result.Test{Script: "a.js", Scenarios: []result.Scenario{produce}},
		Checks: []result.Check{{Name: "a", Passes: 1, Fails: 2}, {Name: "b", Passes: 3}},
	})
	m.add(&result.Result{
		Test:   result.Test{Script: "a.js", Scenarios: []result.Scenario{produce, consume}},
		Checks: []result.Check{{Name: "b", Passes: 4, Fails: 1}, {Name: "c", Passes: 1, Fails: 1}},
	})
	if got := fmt.Sprint(m.result.Test); got != fmt.Sprint(result.Test{Script: "a.js", Scenarios: []result.Scenario{produce, consume}}) {
		t.Error(got)
	}
	if got := fmt.Sprint(m.result.Checks); got != "[{a 1 2} {b 7 1} {c 1 1}]" {
		t.Error(got)
	}
}
