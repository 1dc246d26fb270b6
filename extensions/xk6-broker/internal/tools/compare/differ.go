package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// facts are values of a run by name, which are not measured.
type facts map[string]string

// differences is the table of the facts that differ. A side has each value of its runs once.
func differences(sides []Side, read func(*result.Result) facts) report.Table {
	t := report.Table{Class: "options"}
	all := make([][]facts, len(sides))
	names := map[string]bool{}
	for i, s := range sides {
		t.Heads = append(t.Heads, s.Name)
		for _, r := range s.Runs {
			own := read(r)
			all[i] = append(all[i], own)
			for name := range own {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		line, different := report.Row{Name: name, Label: name}, map[string]bool{}
		for _, runs := range all {
			var values []string
			for _, run := range runs {
				value := cmp.Or(run[name], "–")
				different[value] = true
				if !slices.Contains(values, value) {
					values = append(values, value)
				}
			}
			line.Cells = append(line.Cells, report.Words(strings.Join(values, " / ")))
		}
		if len(different) > 1 {
			t.Rows = append(t.Rows, line)
		}
	}
	return t
}

// prefix distinguishes the facts of several topics.
func prefix(r *result.Result, t *result.Topic) string {
	if len(r.Topics) == 1 {
		return ""
	}
	return t.Topic + " "
}

// testFacts are the scenarios, and the options of all users of a topic.
func testFacts(r *result.Result) facts {
	all := facts{"script": r.Test.Script}
	for _, s := range r.Test.Scenarios {
		name := "scenario " + s.Name + " "
		all[name+"executor"], all[name+"function"] = s.Executor, s.Exec
		all[name+"VUs"] = fmt.Sprintf("%d to %d", s.VUs, max(s.VUs, s.MaxVUs))
		for option, value := range s.Options {
			all[name+option] = report.Value(value)
		}
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		name := prefix(r, t)
		all[name+"open loop"], all[name+"groups"] = fmt.Sprint(t.OpenLoop), fmt.Sprint(len(t.Groups))
		for sort, users := range t.Options {
			for k, options := range users {
				for option, value := range options {
					user := strings.TrimSuffix(fmt.Sprintf("%s %d", sort, k+1), " 1")
					all[name+user+" "+option] = report.Value(value)
				}
			}
		}
	}
	return all
}

// circumstances are the versions of broker and clients, and the machine.
func circumstances(r *result.Result) facts {
	all := facts(maps.Clone(r.Environment))
	for i := range r.Topics {
		t := &r.Topics[i]
		name := prefix(r, t)
		all[name+"driver"], all[name+"server"], all[name+"client"] = t.Driver, t.Info.Server, t.Info.Client
		all[name+"nodes"], all[name+"confirmed means"] = fmt.Sprint(t.Info.Nodes), t.Meaning()
	}
	return all
}
