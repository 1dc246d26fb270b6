package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// Sort is the sort of a difference.
type Sort uint8

// Sorts of differences.
const (
	Tested       Sort = iota // the load and the options
	Circumstance             // versions and machine
)

// Difference is a fact, not a measurement, that differs between the sides.
type Difference struct {
	Sort   Sort
	Topic  string // "" if it is a fact of the whole run
	Name   string
	Values []string // by side; each different value of the repetitions once
}

// differ adds the differences between the sides, and warnings about them.
func (c *Comparison) differ() {
	runs := make([][]*result.Result, len(c.Sides))
	for i, s := range c.Sides {
		runs[i] = s.Runs
		for k, r := range s.Runs {
			if !r.Verdict.Valid {
				c.Warnings = append(c.Warnings, fmt.Sprintf("%s is not valid: %s", runName(s, k), reason.Codes(r.Verdict.Invalid())))
			}
		}
	}
	topics := func(sort Sort, read func(*result.Topic) facts) {
		for _, t := range c.Topics {
			c.Differences = append(c.Differences, differing(sort, t.Name, t.pairs.topics, read)...)
		}
	}
	topics(Tested, loadFacts)
	c.Differences = append(c.Differences, differing(Tested, "", runs, scenarioFacts)...)
	topics(Tested, optionFacts)
	topics(Circumstance, brokerFacts)
	c.Differences = append(c.Differences, differing(Circumstance, "", runs, func(r *result.Result) facts { return r.Environment })...)
	if len(c.DifferencesOf(Tested)) > 0 {
		c.Warnings = append(c.Warnings, "these are not the same tests: see what differs")
	}
	if len(c.DifferencesOf(Circumstance)) > 0 {
		c.Warnings = append(c.Warnings, "the tests ran under different circumstances: see what differs")
	}
}

// DifferencesOf returns the differences of a sort.
func (c *Comparison) DifferencesOf(sort Sort) (all []Difference) {
	for _, d := range c.Differences {
		if d.Sort == sort {
			all = append(all, d)
		}
	}
	return all
}

func runName(s Side, i int) string {
	if len(s.Runs) == 1 {
		return s.Name
	}
	return fmt.Sprintf("%s, run %d (%s)", s.Name, i+1, s.Runs[i].Name)
}

// facts are values by name.
type facts = map[string]string

// absent is the value of a fact that a run does not have.
const absent = "–"

// differing compares a fact of all runs of all sides, by name.
func differing[T any](sort Sort, topic string, sides [][]T, read func(T) facts) (found []Difference) {
	all := make([][]facts, len(sides))
	names := map[string]bool{}
	for i, runs := range sides {
		for _, run := range runs {
			f := read(run)
			all[i] = append(all[i], f)
			for name := range f {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d, different := Difference{Sort: sort, Topic: topic, Name: name}, map[string]bool{}
		for _, runs := range all {
			var values []string
			for _, run := range runs {
				value := cmp.Or(run[name], absent)
				different[value] = true
				if !slices.Contains(values, value) {
					values = append(values, value)
				}
			}
			d.Values = append(d.Values, strings.Join(values, " / "))
		}
		if len(different) > 1 && !((name == sentRate || name == meanSize) && near(different)) {
			found = append(found, d)
		}
	}
	return found
}

const (
	sentRate = "messages sent per second"
	meanSize = "bytes per message"
)

// near reports whether measured numbers are within a twentieth of one another.
func near(all map[string]bool) bool {
	least, most := math.Inf(1), 0.0
	for text := range all {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil { // a run without it
			return false
		}
		least, most = min(least, v), max(most, v)
	}
	return most <= 1.05*least
}

func loadFacts(t *result.Topic) facts {
	all := facts{"open loop": fmt.Sprint(t.OpenLoop)}
	if sent, err := measure.Rate("sent").Of(t); err == nil {
		all[sentRate] = rounded(sent)
	}
	if sent := t.Counts["sent"]; sent > 0 {
		all[meanSize] = rounded(float64(t.Counts["bytes_sent"]) / float64(sent))
	}
	return all
}

func scenarioFacts(r *result.Result) facts {
	all := facts{"script": r.Test.Script}
	for _, s := range r.Test.Scenarios {
		of := "scenario " + s.Name + " "
		all[of+"executor"], all[of+"function"], all[of+"VUs"] = s.Executor, s.Exec, fmt.Sprint(s.VUs)
		if s.MaxVUs > s.VUs {
			all[of+"VUs"] = fmt.Sprintf("%d to %d", s.VUs, s.MaxVUs)
		}
		for name, value := range s.Options {
			all[of+name] = report.Value(value)
		}
	}
	return all
}

// optionFacts are the options of all users of a topic.
func optionFacts(t *result.Topic) facts {
	all := facts{"groups": fmt.Sprint(len(t.Groups))}
	for of, users := range t.Options {
		for i, options := range users {
			user := of
			if i > 0 {
				user = fmt.Sprintf("%s %d", of, i+1)
			}
			for name, value := range options {
				all[user+" "+name] = report.Value(value)
			}
		}
	}
	return all
}

func brokerFacts(t *result.Topic) facts {
	return facts{
		"driver": t.Driver, "server": t.Info.Server, "client": t.Info.Client, "nodes": fmt.Sprint(t.Info.Nodes),
		"embedded": fmt.Sprint(t.Info.Embedded), "confirmed means": t.Meaning(),
	}
}

// rounded returns a number with two digits.
func rounded(v float64) string {
	if v <= 0 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return fmt.Sprintf("%g", math.Round(v/unit)*unit)
}
