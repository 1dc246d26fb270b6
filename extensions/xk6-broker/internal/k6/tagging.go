package k6

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.k6.io/k6/v2/metrics"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// tagging returns which tags the samples of a metric can have.
type tagging struct {
	own map[string][]string // of the module, each with its values; nil where they are not known beforehand
	vus bool                // and those of the VU: scenario, group, what the script sets; else only those of the whole test
}

// moduleTags are the names that the module gives to tags; exclusive are those that no script would have thought of.
var (
	moduleTags    = []string{"driver", "topic", "consumer_group", "loop", "quantile", "trend", "one_in", "op", "kind", "outcome", "mark", phaseTag}
	exclusiveTags = []string{"consumer_group", "loop", "quantile", "one_in", "outcome"}
)

// shownValues is how many of a tag's values are named to one who gave another.
const shownValues = 10

// check returns which tag no sample of the metric can have.
func (t tagging) check(asked *metrics.TagSet) error {
	wanted := asked.Map()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		values, ok := t.own[name]
		switch {
		case ok && values != nil && !slices.Contains(values, wanted[name]):
			if len(values) > shownValues {
				values = append(slices.Clone(values[:shownValues]), "...")
			}
			return fmt.Errorf("no %s %q: there are %s", name, wanted[name], strings.Join(values, ", "))
		case ok:
		case t.vus && slices.Contains(exclusiveTags, name), !t.vus && (slices.Contains(moduleTags, name) || name == "scenario" || name == "group"):
			return errors.New(t.none(name))
		case name == "group" && wanted[name] != "" && !strings.HasPrefix(wanted[name], k6Group):
			return fmt.Errorf("%s; and groups of k6, which are called so, begin with %s", t.none(name), k6Group)
		case driver.Suggest(name, t.names()) != "":
			return errors.New(t.none(name))
		}
	}
	return nil
}

// k6Group is how the paths of k6's own groups begin.
const k6Group = "::"

// names lists the tags that there can be, those aside that the script makes up.
func (t tagging) names() []string {
	all := slices.Sorted(maps.Keys(t.own))
	if t.vus {
		all = append(all, "scenario", "group")
	}
	return all
}

func (t tagging) none(name string) string {
	meant := driver.Suggest(name, t.names())
	if _, ok := t.own["consumer_group"]; ok && strings.Contains(name+meant, "group") { // it is the name of the consumer's option
		meant = " (did you mean consumer_group?)"
	}
	others := "the tags of the whole test (--tag)"
	if t.vus {
		others = "those that k6 and the script set (scenario, group, ...)"
	}
	return fmt.Sprintf("no tag %q%s: it has %s", name, meant, strings.Join(append(slices.Sorted(maps.Keys(t.own)), others), ", "))
}

func (t tagging) with(name string, values ...string) tagging {
	own := maps.Clone(t.own)
	own[name] = values
	return tagging{own, t.vus}
}
