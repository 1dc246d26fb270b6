package driver

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// file is the file that an option of type [File] names: where it is, and its text when it was read
// first.
type file struct{ path, text string }

// ReadFiles reads the files that the options name by another way than the process's own, such as a
// script's. Read returns where a file is besides its text. An error names the option.
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
		if a.files == nil {
			a.files = map[string]file{}
		}
		a.files[name] = file{path, string(text)}
	}
	return nil
}

// isText reports whether a value is the text of a file and not its path.
func isText(value string) bool {
	return strings.Contains(value, "-----BEGIN") || strings.Contains(value, "\n")
}

// File returns the text of an option of type [File]; "" if the option is not set. A file that is
// there is read again, because credentials are renewed; a file of an archive has the text that was
// packed. Errors name the option and the path.
func (t Target) File(option string) (string, error) {
	name := t.Options.String(option)
	if name == "" || isText(name) {
		return name, nil
	}
	read := t.files[name]
	text, err := os.ReadFile(cmp.Or(read.path, name)) //gosec:disable G304 -- a file of the user's
	switch {
	case err == nil:
		return string(text), nil
	case read.text != "":
		return read.text, nil
	}
	return "", &OptionError{option, fmt.Errorf("%w: it is a path, or the text of the file", err)}
}
