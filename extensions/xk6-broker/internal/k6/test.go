package k6

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go.k6.io/k6/v2/lib"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// test returns the script and the scenarios of all processes.
func (r *run) test() result.Test {
	test := result.Test{Scenarios: []result.Scenario{}}
	state := r.state.Load()
	if state == nil { // no VU used the module
		return test
	}
	test.Script = r.scriptFile()
	all, _ := segments(state.execution)
	configs := slices.Collect(maps.Values(state.execution.Test.Options.Scenarios))
	slices.SortFunc(configs, func(a, b lib.ExecutorConfig) int {
		return cmp.Or(cmp.Compare(a.GetStartTime(), b.GetStartTime()), cmp.Compare(a.GetName(), b.GetName()))
	})
	for _, c := range configs {
		planned, most := totalVUs(c, all)
		test.Scenarios = append(test.Scenarios, result.Scenario{
			Name: c.GetName(), Executor: c.GetType(), Exec: c.GetExec(),
			VUs: planned, MaxVUs: most, Options: scenarioOptions(c),
		})
	}
	return test
}

// rateDefaults are the executors' defaults of the options that describe a load.
var rateDefaults = map[string]map[string]any{
	"constant-arrival-rate": {"timeUnit": "1s"},
	"ramping-arrival-rate":  {"timeUnit": "1s"},
	executors.Type:          {"timeUnit": "1s", "arrivals": "constant"},
	"per-vu-iterations":     {"iterations": 1.0},
	"shared-iterations":     {"iterations": 1.0},
}

// scenarioOptions returns the options of a scenario, except the ones the result has elsewhere,
// and without the environment, which can hold secrets.
func scenarioOptions(c lib.ExecutorConfig) map[string]any {
	given := map[string]any{}
	text, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(text, &given)
	}
	if err != nil { // an executor of another extension
		return map[string]any{}
	}
	elsewhere := []string{"executor", "exec", "env", "vus", "preAllocatedVUs", "maxVUs"}
	maps.DeleteFunc(given, func(name string, value any) bool { return value == nil || slices.Contains(elsewhere, name) })
	return withDefaults(given, rateDefaults[c.GetType()])
}

func withDefaults(given, defaults map[string]any) map[string]any {
	for name, value := range defaults {
		if _, ok := given[name]; !ok {
			given[name] = value
		}
	}
	return given
}

// checks returns the script's checks. They are complete once k6's outputs have ended, in
// handleSummary.
func (r *run) checks() []result.Check {
	all := []result.Check{}
	state := r.state.Load()
	if state == nil {
		return all
	}
	var walk func(g *lib.Group)
	walk = func(g *lib.Group) {
		for _, c := range g.OrderedChecks {
			name := strings.TrimPrefix(c.Path, lib.GroupSeparator)
			all = append(all, result.Check{Name: name, Passes: c.Passes, Fails: c.Fails})
		}
		for _, sub := range g.OrderedGroups {
			walk(sub)
		}
	}
	walk(state.execution.Test.GroupSummary.Group())
	return all
}
