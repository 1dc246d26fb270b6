// Package cells runs scripts many times. A cell is one k6 process with its own settings and folder.
// The journal keeps each outcome, so that an interrupted study resumes. Sweep, capacity and studies
// share its page.
package cells

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Settings are variables of a script's environment. A cell with an empty one cannot be run.
type Settings map[string]string

// UnmarshalJSON reads texts, numbers, booleans and null.
func (s *Settings) UnmarshalJSON(text []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	*s = Settings{}
	for name, value := range values {
		own := strings.TrimPrefix(string(value), "null")
		switch value[0] {
		case '"':
			if err := json.Unmarshal(value, &own); err != nil {
				return err
			}
		case '{', '[':
			return fmt.Errorf("a setting is a text, a number or a boolean, and not %s", value)
		}
		(*s)[name] = own
	}
	return nil
}

// Names returns the names in the order of the alphabet.
func (s Settings) Names() []string { return slices.Sorted(maps.Keys(s)) }

// String joins the settings without secrets.
func (s Settings) String() string {
	var parts []string
	for _, name := range s.Names() {
		parts = append(parts, name+"="+s.Show(name))
	}
	return strings.Join(parts, " ")
}

// Show returns the value of a setting without secrets; "" if there is none.
func (s Settings) Show(name string) string {
	if secretName.MatchString(name) && s[name] != "" {
		return hidden
	}
	return Shown(s[name])
}

func (s Settings) environment() (env []string) {
	for name, value := range s {
		env = append(env, name+"="+value)
	}
	return env
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
