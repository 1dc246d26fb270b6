package studies

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
)

// environment is __ENV of a study's file, and knows what of it was read.
type environment struct {
	vm   *sobek.Runtime
	all  map[string]string
	read map[string]bool
}

// Get is of sobek.DynamicObject, as are the others.
func (e environment) Get(name string) sobek.Value {
	value, ok := e.all[name]
	if !ok {
		return nil
	}
	e.read[name] = true
	return e.vm.ToValue(value)
}

func (e environment) Set(string, sobek.Value) bool { return false }

func (e environment) Has(name string) bool {
	_, ok := e.all[name]
	return ok
}

func (e environment) Delete(string) bool { return false }

func (e environment) Keys() []string { return slices.Sorted(maps.Keys(e.all)) }

// values are those that were read.
func (e environment) values() (all sweep.Values) {
	for _, name := range slices.Sorted(maps.Keys(e.read)) {
		all = append(all, sweep.Value{Name: name, Value: e.all[name]})
	}
	return all
}

// local is where a broker of scripts/broker listens, which may be at another port when the study is gone on with.
var local = regexp.MustCompile(`(127\.0\.0\.1|localhost|\[::1\]):\d+`)

func anyPort(value string) string { return local.ReplaceAllString(value, "$1") }

// surroundings are what the environment says besides the settings of the cells.
func (r *Run) surroundings() (facts []sweep.Fact) {
	for i := range r.Study.Tests {
		name := r.Study.Tests[i].Script
		for _, f := range r.scripts[name].Environment(func(setting string) bool { return r.everywhere(name, setting) }, anyPort) {
			if !slices.Contains(facts, f) {
				facts = append(facts, f)
			}
		}
	}
	return facts
}

// everywhere tells whether all cells of a script set a variable.
func (r *Run) everywhere(script, setting string) bool {
	set := func(all []Setting) bool {
		return slices.ContainsFunc(all, func(s Setting) bool { return s.Name == setting })
	}
	for i := range r.Study.Tests {
		t := &r.Study.Tests[i]
		for _, c := range t.Cells {
			if t.Script == script && (!set(c.Settings) || c.Before != nil && !set(c.Before)) {
				return false
			}
		}
	}
	return true
}

// said is what the environment says, to the study's file and to the scripts, in a line.
func (r *Run) said() string {
	all := slices.Clone(r.Study.Environment)
	for _, v := range sweep.FromEnvironment(r.surroundings()) {
		if all.Of(v.Name) == "" {
			all = append(all, v)
		}
	}
	return strings.TrimSpace(all.String())
}
