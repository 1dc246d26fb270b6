// Package cells runs scripts many times. A cell is one k6 process with its own settings and folder.
// The journal keeps each outcome, so that an interrupted study resumes. Sweep, capacity and studies
// share its page.
package cells

import (
	"regexp"
	"strings"
)

// Value is a setting of a cell: a variable of the script's environment.
type Value struct {
	Name  string
	Value string
}

// Values are the settings of a cell.
type Values []Value

// reserved reports whether the runner sets a variable itself.
func reserved(name string) bool {
	switch name {
	case "BROKER_RUN", "BROKER_PROCESSES", "BROKER_COORDINATOR":
		return true
	}
	return strings.HasPrefix(name, "BROKER_REPORT")
}

const (
	hidden = "xxxxx"
	//gosec:disable G101 -- words
	secretWords = `(?:pass|pwd|secret|token|credential|(?:access|api|private|account|auth)[_-]?key)`
)

var (
	// credentials match the user of a URL, up to the last @.
	credentials = regexp.MustCompile(`(://)\S*@`)
	secretName  = regexp.MustCompile(`(?i)` + secretWords)
	// assigned matches NAME=VALUE and --name VALUE.
	assigned = regexp.MustCompile(
		`(?i)([\w.-]*` + secretWords + `[\w.-]*=|--?[\w-]*` + secretWords + `[\w-]*\s+)('[^']*'|"[^"]*"|[^&;#\s]+)`)
)

// Shown returns a text without passwords and tokens.
func Shown(text string) string {
	text = credentials.ReplaceAllString(text, "${1}"+hidden+"@")
	return assigned.ReplaceAllString(text, "${1}"+hidden)
}

// Shown returns the value without secrets.
func (v Value) Shown() string {
	if secretName.MatchString(v.Name) {
		return hidden
	}
	return Shown(v.Value)
}

// String joins the settings without secrets.
func (all Values) String() string {
	parts := make([]string, len(all))
	for i, v := range all {
		parts[i] = v.Name + "=" + v.Shown()
	}
	return strings.Join(parts, " ")
}

// Get returns the value of a setting without secrets; "" if there is none.
func (all Values) Get(name string) string {
	for _, v := range all {
		if v.Name == name {
			return v.Shown()
		}
	}
	return ""
}

func (all Values) environment() []string {
	env := make([]string, len(all))
	for i, v := range all {
		env[i] = v.Name + "=" + v.Value
	}
	return env
}
