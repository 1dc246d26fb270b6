package result

import (
	"cmp"
	"reflect"
	"slices"
)

// Test is the script and its scenarios.
type Test struct {
	Script    string     `json:"script"` // its file's name
	Scenarios []Scenario `json:"scenarios"`
}

// Scenario is one of the test's scenarios, over all processes.
type Scenario struct {
	Name     string         `json:"name"`
	Executor string         `json:"executor"`
	Exec     string         `json:"exec"` // the function of the script that it runs
	VUs      uint64         `json:"vus"`
	MaxVUs   uint64         `json:"maxVUs"`  // with those that may be added while it runs
	Options  map[string]any `json:"options"` // its other options
}

// Check is one of the script's checks.
type Check struct {
	Name   string `json:"name"` // with the k6 groups around it: "group::check"
	Passes int64  `json:"passes"`
	Fails  int64  `json:"fails"`
}

// Annotation is an event that the script reported.
type Annotation struct {
	At   float64 `json:"at"` // seconds from the start
	What string  `json:"what"`
}

// runs reports whether a scenario has one of the executors.
func (t *Test) runs(executors ...string) bool {
	return slices.ContainsFunc(t.Scenarios, func(s Scenario) bool { return slices.Contains(executors, s.Executor) })
}

// merge adds the scenarios that only another process has.
func (t *Test) merge(other Test) {
	t.Script = cmp.Or(t.Script, other.Script)
	for _, s := range other.Scenarios {
		if !slices.ContainsFunc(t.Scenarios, func(have Scenario) bool { return reflect.DeepEqual(have, s) }) {
			t.Scenarios = append(t.Scenarios, s)
		}
	}
}

// mergeChecks adds up the checks of one name.
func mergeChecks(to, from []Check) []Check {
	for _, c := range from {
		i := slices.IndexFunc(to, func(have Check) bool { return have.Name == c.Name })
		if i < 0 {
			to = append(to, c)
			continue
		}
		to[i].Passes += c.Passes
		to[i].Fails += c.Fails
	}
	return to
}
