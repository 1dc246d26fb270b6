package driver

import (
	"fmt"
	"strings"
)

// UnknownOptionError reports an option that the driver does not have in that place. A caller with
// options of its own adds their names.
type UnknownOptionError struct {
	Driver string
	Name   string
	Where  string   // " here", [InURL], or "" if the options of all scopes are allowed
	Known  []string // allowed names, the most usual first
}

// InURL is [UnknownOptionError.Where] for an option in a URL's query.
const InURL = " in the URL"

func (e *UnknownOptionError) Error() string {
	hint := Suggest(e.Name, e.Known)
	return fmt.Sprintf(
		"%s has no option %q%s%s: known are %s", e.Driver, e.Name, e.Where, hint, strings.Join(e.Known, ", "),
	)
}

// Suggest returns a hint such as " (did you mean group?)" if given is a name with one typing
// mistake, else "".
func Suggest(given string, names []string) string {
	const shortest = 3
	if len(given) < shortest {
		return ""
	}
	for _, name := range names {
		if name != given && similar(strings.ToLower(given), strings.ToLower(name)) {
			return fmt.Sprintf(" (did you mean %s?)", name)
		}
	}
	return ""
}

// similar reports whether a becomes b if one letter is added, removed or replaced, or two
// neighbours change places.
func similar(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 2 && len(b) == 2 {
		return a[0] == b[1] && a[1] == b[0]
	}
	return len(a) <= 1 && len(b) <= 1
}
