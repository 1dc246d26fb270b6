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

// Sort is what a difference is about.
type Sort uint8

// Sorts of differences.
const (
	Tested       Sort = iota // what was asked for: the load, the options
	Circumstance             // what it ran on: versions, machine
)

// Difference is something other than a measurement in which the sides differ.
type Difference struct {
	Sort   Sort
	Topic  string // "" where it is of the whole run
	Name   string
	Values []string // by side; of several repetitions that differ, each value once
}

// differ looks for what makes a comparison unfair, or needs to be known: what matters and is not the same.
func (c *Comparison) differ() {
	for _, s := range c.Sides {
		for i, r := range s.Runs {
			if !r.Verdict.Valid {
				c.Warnings = append(c.Warnings, fmt.Sprintf("%s is not valid: %s", runName(s, i), reason.Codes(r.Verdict.Invalid())))
			}
		}
	}
	ofRuns := func(sort Sort, read func(*result.Result) traits) {
		c.compare(sort, "", func(side int) []traits {
			var all []traits
			for _, r := range c.Sides[side].Runs {
				all = append(all, read(r))
			}
			return all
		})
	}
	ofTopics := func(sort Sort, read func(*result.Topic) traits) {
		for _, t := range c.Topics {
			c.compare(sort, t.Name, func(side int) []traits {
				var all []traits
				for _, topic := range t.pairs.topics[side] {
					all = append(all, read(topic))
				}
				return all
			})
		}
	}
	ofTopics(Tested, rates)
	ofRuns(Tested, scenarios)
	ofTopics(Tested, options)
	ofTopics(Circumstance, broker)
	ofRuns(Circumstance, environment)
	if len(c.DifferencesOf(Tested)) > 0 {
		c.Warnings = append(c.Warnings, "these are not the same tests: see what differs")
	}
	if len(c.DifferencesOf(Circumstance)) > 0 {
		c.Warnings = append(c.Warnings, "the tests ran under different circumstances: see what differs")
	}
}

// DifferencesOf are those of a sort.
func (c *Comparison) DifferencesOf(sort Sort) []Difference {
	var all []Difference
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

// trait is something that a run has besides its results: an option of a scenario, a version.
type trait struct {
	of   string // whose it is: "scenario produce", "producer"; "" for the test's own
	name string
}

func (t trait) String() string { return strings.TrimSpace(t.of + " " + t.name) }

// traits are those of a run, or of a topic in it.
type traits map[trait]string

// whole are all traits of one owner in a line.
func (t traits) whole(of string) string {
	var parts []string
	for k, value := range t {
		if k.of == of {
			parts = append(parts, k.name+" "+value)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// absent is the value of what a run has not.
const absent = "–"

// compare notes every trait that is not the same in all runs. An owner that some side has not is one difference, whatever its traits.
func (c *Comparison) compare(sort Sort, topic string, of func(side int) []traits) {
	sides := make([][]traits, len(c.Sides))
	all, owners := map[trait]bool{}, map[string]int{}
	for i := range sides {
		sides[i] = of(i)
		here := map[string]bool{}
		for _, run := range sides[i] {
			for k := range run {
				all[k], here[k.of] = true, true
			}
		}
		for owner := range here {
			owners[owner]++
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		if owner != "" && owners[owner] < len(sides) {
			c.note(Difference{Sort: sort, Topic: topic, Name: owner}, sides, func(run traits) string { return cmp.Or(run.whole(owner), absent) })
			continue
		}
		for _, k := range slices.SortedFunc(maps.Keys(all), func(a, b trait) int { return cmp.Compare(a.name, b.name) }) {
			if k.of == owner {
				c.note(Difference{Sort: sort, Topic: topic, Name: k.String()}, sides, func(run traits) string { return cmp.Or(run[k], absent) })
			}
		}
	}
}

// note adds a difference, if it is one.
func (c *Comparison) note(d Difference, sides [][]traits, read func(traits) string) {
	all := map[string]bool{}
	for _, runs := range sides {
		var values []string
		for _, run := range runs {
			value := read(run)
			all[value] = true
			if !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
		d.Values = append(d.Values, strings.Join(values, " / "))
	}
	if len(all) > 1 && !(measured[d.Name] && near(all)) {
		c.Differences = append(c.Differences, d)
	}
}

const (
	sentRate = "messages sent per second"
	meanSize = "bytes per message"
)

// measured are the traits that are measured: repetitions never are alike to the last message.
var measured = map[string]bool{sentRate: true, meanSize: true}

// near reports whether numbers are within a twentieth of one another.
func near(all map[string]bool) bool {
	least, most := math.Inf(1), 0.0
	for text := range all {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil { // a run knows none
			return false
		}
		least, most = min(least, v), max(most, v)
	}
	return most <= 1.05*least
}

// rates are how much load there was.
func rates(t *result.Topic) traits {
	all := traits{{name: "open loop"}: fmt.Sprint(t.OpenLoop)}
	if sent, err := measure.Rate("sent").Of(t); err == nil {
		all[trait{name: sentRate}] = rounded(sent)
	}
	if sent := t.Counts["sent"]; sent > 0 {
		all[trait{name: meanSize}] = rounded(float64(t.Counts["bytes_sent"]) / float64(sent))
	}
	return all
}

// scenarios are what k6 was asked for.
func scenarios(r *result.Result) traits {
	all := traits{}
	if r.Test.Script != "" {
		all[trait{name: "script"}] = r.Test.Script
	}
	for _, s := range r.Test.Scenarios {
		of := "scenario " + s.Name
		all[trait{of, "executor"}], all[trait{of, "function"}], all[trait{of, "VUs"}] = s.Executor, s.Exec, fmt.Sprint(s.VUs)
		if s.MaxVUs > s.VUs {
			all[trait{of, "VUs"}] = fmt.Sprintf("%d to %d", s.VUs, s.MaxVUs)
		}
		for name, value := range s.Options {
			all[trait{of, name}] = report.Value(value)
		}
	}
	return all
}

// options are those of all that used a topic.
func options(t *result.Topic) traits {
	all := traits{{name: "groups"}: fmt.Sprint(len(t.Groups))}
	for of, users := range t.Options {
		for i, options := range users {
			user := of
			if i > 0 {
				user = fmt.Sprintf("%s %d", of, i+1)
			}
			for name, value := range options {
				all[trait{user, name}] = report.Value(value)
			}
		}
	}
	return all
}

// broker is what the messages went through.
func broker(t *result.Topic) traits {
	return traits{
		{name: "driver"}: t.Driver, {name: "server"}: t.Info.Server, {name: "client"}: t.Info.Client, {name: "nodes"}: fmt.Sprint(t.Info.Nodes),
		{name: "embedded"}: fmt.Sprint(t.Info.Embedded), {name: "confirmed means"}: t.Meaning(),
	}
}

// environment is what the test ran on.
func environment(r *result.Result) traits {
	all := traits{}
	for name, value := range r.Environment {
		all[trait{name: name}] = value
	}
	return all
}

// rounded is a number to two digits.
func rounded(v float64) string {
	if v <= 0 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return fmt.Sprintf("%g", math.Round(v/unit)*unit)
}
