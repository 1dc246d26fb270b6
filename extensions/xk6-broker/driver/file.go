package driver

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// ReadFiles replaces the files that the options name by their paths, or by their texts if only read
// can read them, as in a k6 archive. read returns a file's path and text. Errors name the option.
func (a *Address) ReadFiles(read func(name string) (path string, text []byte, err error)) error {
	for _, option := range slices.Sorted(maps.Keys(a.given)) {
		o, _ := a.Driver.Option(option)
		name, _ := a.given[option].(string)
		if o.Type != File || name == "" || isText(name) {
			continue
		}
		path, text, err := read(name)
		if err != nil {
			return &OptionError{option, err}
		}
		if _, err := os.Stat(path); err != nil {
			path = string(text) + "\n"
		}
		a.given[option] = path
	}
	return nil
}

// isText reports whether a value is the text of a file and not its path.
func isText(value string) bool {
	return strings.Contains(value, "-----BEGIN") || strings.Contains(value, "\n")
}

// File returns the text of an option of type [File]; "" if the option is not set. It reads the file
// each time, because credentials are renewed. Errors name the option and the path.
func (t Target) File(option string) (string, error) {
	name := t.Options.String(option)
	if name == "" || isText(name) {
		return name, nil
	}
	text, err := os.ReadFile(name) //gosec:disable G304 -- a file of the user's
	if err != nil {
		return "", &OptionError{option, fmt.Errorf("%w: it is a path, or the text of the file", err)}
	}
	return string(text), nil
}
