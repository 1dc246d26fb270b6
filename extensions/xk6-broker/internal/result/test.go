package result

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Test is what was asked for.
type Test struct {
	Script    string     `json:"script"` // its file's name
	Scenarios []Scenario `json:"scenarios"`
}

// Scenario is one of the test's scenarios, as a whole: not what one of several processes has of it.
type Scenario struct {
	Name     string         `json:"name"`
	Executor string         `json:"executor"`
	Exec     string         `json:"exec"`    // the function of the script that it runs
	VUs      uint64         `json:"vus"`     // planned for it
	MaxVUs   uint64         `json:"maxVUs"`  // those that may be added while it runs included
	Options  map[string]any `json:"options"` // its other options, by the names that the script gives them
}

// Check is one of the script's checks.
type Check struct {
	Name   string `json:"name"` // after those of the groups of k6 that it is in: "group::check"
	Passes int64  `json:"passes"`
	Fails  int64  `json:"fails"`
}

// Annotation is something that the script said had happened.
type Annotation struct {
	At   float64 `json:"at"` // seconds from the start
	What string  `json:"what"`
}

// runs tells whether one of its scenarios has one of the executors.
func (t *Test) runs(executors ...string) bool {
	return slices.ContainsFunc(t.Scenarios, func(s Scenario) bool { return slices.Contains(executors, s.Executor) })
}

// merge adds the scenarios that only another process knows of, or knows otherwise.
func (t *Test) merge(other Test) {
	t.Script = cmp.Or(t.Script, other.Script)
	for _, s := range other.Scenarios {
		if !slices.ContainsFunc(t.Scenarios, func(have Scenario) bool { return reflect.DeepEqual(have, s) }) {
			t.Scenarios = append(t.Scenarios, s)
		}
	}
}

// lacking is the first scenario with a load that another process has not; "" where there is none.
func (t *Test) lacking(other *Test) string {
	for _, s := range t.Scenarios {
		if slices.Contains(arrivals, s.Executor) && !slices.ContainsFunc(other.Scenarios, func(of Scenario) bool { return of.Name == s.Name }) {
			return s.Name
		}
	}
	return ""
}

// otherwise says what two processes have otherwise in a scenario of one name; "" where they do not.
func (t *Test) otherwise(other *Test) string {
	for _, s := range t.Scenarios {
		i := slices.IndexFunc(other.Scenarios, func(of Scenario) bool { return of.Name == s.Name })
		if i < 0 || reflect.DeepEqual(s, other.Scenarios[i]) {
			continue
		}
		of := other.Scenarios[i]
		if s.Executor != of.Executor || s.Exec != of.Exec {
			return fmt.Sprintf("scenario %s is %s of %s in the one, and %s of %s in the other", s.Name, s.Executor, s.Exec, of.Executor, of.Exec)
		}
		if what := differing("scenario "+s.Name, s.Options, of.Options); what != "" {
			return what
		}
		return fmt.Sprintf("scenario %s has %d VUs in the one, and %d in the other", s.Name, s.VUs, of.VUs)
	}
	return ""
}

// differing says which is the first option of something that two have otherwise; "" where none is.
func differing(of string, one, other map[string]any) string {
	for _, option := range slices.Sorted(maps.Keys(Combined(one, other, func(a, _ any) any { return a }))) {
		if a, b := one[option], other[option]; !reflect.DeepEqual(a, b) {
			return fmt.Sprintf("%s of %s is %v in the one, and %v in the other", option, of, cmp.Or(a, any("not set")), cmp.Or(b, any("not set")))
		}
	}
	return ""
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
