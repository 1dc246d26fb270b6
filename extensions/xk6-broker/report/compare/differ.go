package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/load"
)

// Difference is something other than a measurement in which the sides differ.
type Difference struct {
	Topic  string // "" where it is of the whole run
	Name   string
	Values []string // by side; of several repetitions that differ, each value once
}

// differ looks for what makes a comparison unfair, or needs to be known: what matters and is not the same.
func (c *Comparison) differ() {
	for _, s := range c.Sides {
		for i, r := range s.Runs {
			if !r.Verdict.Valid {
				c.Warnings = append(c.Warnings, fmt.Sprintf("%s is not valid: %s", runName(s, i), strings.Join(r.Verdict.Reasons, "; ")))
			}
		}
	}
	c.compare("", func(side int) []map[string]string {
		var all []map[string]string
		for _, r := range c.Sides[side].Runs {
			all = append(all, r.Environment)
		}
		return all
	})
	for _, t := range c.Topics {
		c.compare(t.Name, func(side int) []map[string]string {
			var all []map[string]string
			for _, topic := range t.pairs.topics[side] {
				all = append(all, traits(topic))
			}
			return all
		})
	}
	if len(c.Differences) > 0 {
		c.Warnings = append(c.Warnings, "not everything but the result is the same: see what differs")
	}
}

func runName(s Side, i int) string {
	if len(s.Runs) == 1 {
		return s.Name
	}
	return fmt.Sprintf("%s, run %d (%s)", s.Name, i+1, s.Runs[i].Name)
}

// compare notes every trait that is not the same in all runs.
func (c *Comparison) compare(topic string, of func(side int) []map[string]string) {
	sides := make([][]map[string]string, len(c.Sides))
	names := map[string]bool{}
	for i := range sides {
		sides[i] = of(i)
		for _, run := range sides[i] {
			for name := range run {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all := map[string]bool{}
		d := Difference{Topic: topic, Name: name}
		for _, runs := range sides {
			var values []string
			for _, run := range runs {
				value, ok := run[name]
				if !ok {
					value = "–"
				}
				all[value] = true
				if !slices.Contains(values, value) {
					values = append(values, value)
				}
			}
			d.Values = append(d.Values, strings.Join(values, " / "))
		}
		if len(all) > 1 {
			c.Differences = append(c.Differences, d)
		}
	}
}

// traits are what a topic's numbers depend on.
func traits(t *load.TopicResult) map[string]string {
	all := map[string]string{
		"driver": t.Driver, "server": t.Info.Server, "client": t.Info.Client, "nodes": fmt.Sprint(t.Info.Nodes),
		"embedded": fmt.Sprint(t.Info.Embedded), "confirmed means": t.Confirm, "open loop": fmt.Sprint(t.OpenLoop),
		"groups": fmt.Sprint(len(t.Groups)),
	}
	if due, err := rateOf("due").read(t); err == nil {
		all["messages due per second"] = rounded(due)
	}
	if sent := t.Counts["sent"]; sent > 0 {
		all["bytes per message"] = rounded(float64(t.Counts["bytes_sent"]) / float64(sent))
	}
	for of, users := range t.Options {
		for i, options := range users {
			for name, value := range options {
				key := of + " " + name
				if i > 0 {
					key = fmt.Sprintf("%s %d %s", of, i+1, name)
				}
				all[key] = fmt.Sprint(value)
			}
		}
	}
	return all
}

// rounded is a number to two digits: repetitions never are alike to the last message.
func rounded(v float64) string {
	if v <= 0 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return fmt.Sprintf("%g", math.Round(v/unit)*unit)
}
