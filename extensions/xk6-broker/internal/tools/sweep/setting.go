// Package sweep runs one script many times with different settings: a plan of cells, a k6 process for each, a journal
// from which an interrupted study resumes, and a page.
package sweep

import (
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Setting is a name that the script reads from __ENV, and its values.
type Setting struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// ParseSetting parses NAME=VALUE,VALUE. As in CSV, a value with a comma is quoted.
func ParseSetting(text string) (Setting, error) {
	name, list, ok := strings.Cut(text, "=")
	if !ok || name == "" || list == "" {
		return Setting{}, fmt.Errorf("--set %q: write NAME=VALUE,VALUE", Shown(text))
	}
	records, err := csv.NewReader(strings.NewReader(list)).ReadAll()
	if err != nil || len(records) != 1 {
		return Setting{}, fmt.Errorf(`--set %s: malformed values: write a value with a comma or a quotation mark as "a,b"`, name)
	}
	return Setting{Name: name, Values: records[0]}, nil
}

// reserved are the settings that the runner gives each cell.
var reserved = []string{
	"BROKER_REPORT", "BROKER_REPORT_DIR", "BROKER_REPORT_NAME", "BROKER_REPORT_OVERWRITE", "BROKER_REPORT_MEANWHILE", "BROKER_RUN", "BROKER_PROCESSES",
	"BROKER_COORDINATOR",
}

// Reserved reports whether the runner gives a setting itself.
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
		shown := Value{s.Name, v}.Shown()
		switch {
		case v == "" || strings.ContainsRune(v, 0):
			return fmt.Errorf("%s has an empty value, or one with a zero byte", s.Name)
		case seen[shown]:
			return fmt.Errorf("%s has the value %s twice, secrets aside: add a setting that names them, with --zip", s.Name, shown)
		}
		seen[shown] = true
	}
	return nil
}

// Value is a setting of a cell.
type Value struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

const hidden = "xxxxx"

var (
	// password is that of a user in a URL, up to the last @ if the URL is malformed.
	password = regexp.MustCompile(`(://[^/?#@:\s]*):[^\s]*@`)
	// token is a user without a password, which is a token to some brokers.
	token = regexp.MustCompile(`(://)[^/?#:\s]+@`)
	// secretName is in the names of settings, URL options and flags with a secret.
	secretName = regexp.MustCompile(`(?i)` + secretWords)
	// assigned is NAME=VALUE, and --name VALUE.
	assigned = regexp.MustCompile(`(?i)([\w.-]*` + secretWords + `[\w.-]*=|--?[\w-]*` + secretWords + `[\w-]*\s+)('[^']*'|"[^"]*"|[^&;#\s]+)`)
)

const secretWords = `(?:pass|pwd|secret|token|credential|(?:access|api|private|account|auth)[_-]?key)` //gosec:disable G101 -- words

// Shown returns a text without its secrets: passwords and tokens in URLs, and values whose names are those of secrets.
func Shown(text string) string {
	text = token.ReplaceAllString(password.ReplaceAllString(text, "$1:"+hidden+"@"), "${1}"+hidden+"@")
	return assigned.ReplaceAllString(text, "${1}"+hidden)
}

// Shown returns the value without secrets.
func (v Value) Shown() string {
	if secretName.MatchString(v.Name) {
		return hidden
	}
	return Shown(v.Value)
}

// Values are the settings of a cell, in the order of the study.
type Values []Value

// String joins them without secrets.
func (all Values) String() string {
	parts := make([]string, len(all))
	for i, v := range all {
		parts[i] = v.Name + "=" + v.Shown()
	}
	return strings.Join(parts, " ")
}

// Of returns the value of a setting without secrets; "" if there is none.
func (all Values) Of(name string) string {
	i := slices.IndexFunc(all, func(v Value) bool { return v.Name == name })
	if i < 0 {
		return ""
	}
	return all[i].Shown()
}

func (all Values) environment() []string {
	env := make([]string, len(all))
	for i, v := range all {
		env[i] = v.Name + "=" + v.Value
	}
	return env
}

// zip returns the settings of one axis, which must have equally many values.
func zip(all []Setting, names []string) (axis []Setting, err error) {
	for _, name := range names {
		i := slices.IndexFunc(all, func(s Setting) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--zip %s: there is no --set %s", strings.Join(names, ","), name)
		}
		if len(axis) > 0 && len(all[i].Values) != len(axis[0].Values) {
			return nil, fmt.Errorf("--zip %s: %s has %d values and %s has %d: pairs need as many of each",
				strings.Join(names, ","), axis[0].Name, len(axis[0].Values), name, len(all[i].Values))
		}
		axis = append(axis, all[i])
	}
	if len(axis) < 2 {
		return nil, errors.New("--zip: name two settings or more, such as --zip A,B")
	}
	return axis, nil
}
