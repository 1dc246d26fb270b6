package sweep

import (
	"os"
	"slices"
	"strings"
)

// own are the settings that Go and the module read by themselves, whatever the script does; k6 has its own, K6_.
var own = []string{"BROKER_WARMUP", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG"}

// printing are those of k6 that only change what it prints, or tells others.
var printing = []string{"K6_NO_USAGE_REPORT", "K6_NO_COLOR", "K6_QUIET", "K6_VERBOSE", "K6_LOG_", "K6_CONSOLE_OUTPUT", "K6_CLOUD_TOKEN"}

const ofEnvironment = ", of the environment"

// Environment is what decides of what is run besides the settings of the cells: what the process's environment has of the names that the script, or what it
// imports, reads, and of those that k6 and this module read by themselves. Those that are set otherwise are left out, and same makes one of values
// that come to the same; nil where there are none.
func (s *Script) Environment(set func(name string) bool, same func(value string) string) []Fact {
	var facts []Fact
	env := slices.Sorted(slices.Values(os.Environ()))
	for _, one := range env {
		name, value, _ := strings.Cut(one, "=")
		silent := slices.ContainsFunc(printing, func(of string) bool { return strings.HasPrefix(name, of) })
		decides := slices.Contains(s.Names, name) || slices.Contains(own, name) || strings.HasPrefix(name, "K6_") && !silent
		if value == "" || !decides || Reserved(name) || set(name) {
			continue
		}
		if same != nil {
			value = same(value)
		}
		facts = append(facts, Fact{name + ofEnvironment, compared(value, shownAs(name, value))})
	}
	return facts
}

// FromEnvironment are the facts of the environment, by the names of the variables.
func FromEnvironment(facts []Fact) (all Values) {
	for _, f := range facts {
		if name, ok := strings.CutSuffix(f.What, ofEnvironment); ok {
			all = append(all, Value{Name: name, Value: f.Is})
		}
	}
	return all
}
