// Package study runs one script many times with different settings: the plan of its cells, the k6 process that each is, the journal that an
// interrupted study goes on from, and what is drawn of the results.
package sweep

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Setting is a name that the script reads from __ENV, and the values that it is to have.
type Setting struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// ParseSetting understands NAME=VALUE,VALUE. As in CSV, a value with a comma in it stands between quotation marks.
func ParseSetting(text string) (Setting, error) {
	name, list, ok := strings.Cut(text, "=")
	if !ok || name == "" || list == "" {
		return Setting{}, fmt.Errorf("--set %q: write NAME=VALUE,VALUE", Shown(text))
	}
	r := csv.NewReader(strings.NewReader(list))
	records, err := r.ReadAll()
	if err != nil || len(records) != 1 {
		return Setting{}, fmt.Errorf(`--set %s: the values are not understood: a value with a comma or a quotation mark in it is written "a,b"`, name)
	}
	return Setting{Name: name, Values: records[0]}, nil
}

// reserved are what the study itself tells a script of each cell: each is a test of its own, of one process.
var reserved = []string{"BROKER_REPORT", "BROKER_REPORT_DIR", "BROKER_REPORT_NAME", "BROKER_REPORT_OVERWRITE", "BROKER_REPORT_MEANWHILE", "BROKER_RUN", "BROKER_PROCESSES", "BROKER_COORDINATOR"}

// Reserved tells whether a setting is the study's own.
func Reserved(name string) bool { return slices.Contains(reserved, name) }

func (s Setting) check() error {
	if Reserved(s.Name) {
		return fmt.Errorf("%s is the study's own: each cell is a test by itself, with a folder of its own", s.Name)
	}
	if len(s.Values) == 0 {
		return fmt.Errorf("%s has no values", s.Name)
	}
	seen := map[string]bool{}
	for _, v := range s.Values {
		switch {
		case v == "":
			return fmt.Errorf("%s has an empty value", s.Name)
		case strings.ContainsRune(v, 0):
			return fmt.Errorf("%s has a value with a zero byte in it", s.Name)
		case seen[v]:
			return fmt.Errorf("%s has the value %s twice", s.Name, shownAs(s.Name, v))
		default:
			seen[v] = true
		}
	}
	return nil
}

// all are its values. Those that differ by a secret only are told apart by their places.
func (s Setting) all() []Value {
	count, of := map[string]int{}, make([]Value, len(s.Values))
	for _, v := range s.Values {
		count[shownAs(s.Name, v)]++
	}
	for i, v := range s.Values {
		of[i] = Value{Name: s.Name, Value: v}
		if text := of[i].Shown(); count[text] > 1 {
			of[i].shown = fmt.Sprintf("%s (%d)", text, i+1)
		}
	}
	return of
}

// Value is a setting as a cell has it.
type Value struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	shown string // where others look the same without their secrets
}

// Shown is the value without secrets.
func (v Value) Shown() string { return cmp.Or(v.shown, shownAs(v.Name, v.Value)) }

// Values are the settings of a cell, in the order in which the study lists them.
type Values []Value

// String writes them without secrets.
func (all Values) String() string {
	parts := make([]string, len(all))
	for i, v := range all {
		parts[i] = v.Name + "=" + v.Shown()
	}
	return strings.Join(parts, " ")
}

// Of is the value of a setting, without secrets; "" where there is none of that name.
func (all Values) Of(name string) string {
	i := slices.IndexFunc(all, func(v Value) bool { return v.Name == name })
	if i < 0 {
		return ""
	}
	return all[i].Shown()
}

// without leaves settings out.
func (all Values) without(constant Values) Values {
	return slices.DeleteFunc(slices.Clone(all), func(v Value) bool { return slices.Contains(constant, v) })
}

// environment is what a process gets of them.
func (all Values) environment() []string {
	env := make([]string, len(all))
	for i, v := range all {
		env[i] = v.Name + "=" + v.Value
	}
	return env
}

// zip finds the settings of one axis, and checks that they have as many values.
func zip(all []Setting, names []string) ([]Setting, error) {
	var of []Setting
	for _, name := range names {
		i := slices.IndexFunc(all, func(s Setting) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--zip %s: there is no --set %s", strings.Join(names, ","), name)
		}
		if len(of) > 0 && len(all[i].Values) != len(of[0].Values) {
			return nil, fmt.Errorf("--zip %s: %s has %d values and %s has %d: pairs need as many of each",
				strings.Join(names, ","), of[0].Name, len(of[0].Values), name, len(all[i].Values))
		}
		of = append(of, all[i])
	}
	if len(of) < 2 {
		return nil, errors.New("--zip: name two settings or more, such as --zip A,B")
	}
	return of, nil
}
