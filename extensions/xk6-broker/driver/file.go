package driver

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// file is a file that an option of type [File] names, and its text when it was read first.
type file struct{ path, text string }

// ReadFiles reads the files of the options with read, which returns a file's path and text. It is
// for scripts, whose paths are not relative to the working directory. Errors name the option.
func (a *Address) ReadFiles(read func(name string) (path string, text []byte, err error)) error {
	a.files = map[string]file{}
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
		a.files[name] = file{path, string(text)}
	}
	return nil
}

// isText reports whether a value is the text of a file and not its path.
func isText(value string) bool {
	return strings.Contains(value, "-----BEGIN") || strings.Contains(value, "\n")
}

// File returns the text of an option of type [File]; "" if the option is not set. It reads an
// existing file each time, because credentials are renewed. Errors name the option and the path.
func (t Target) File(option string) (string, error) {
	name := t.Options.String(option)
	if name == "" || isText(name) {
		return name, nil
	}
	first := t.files[name]
	text, err := os.ReadFile(cmp.Or(first.path, name)) //gosec:disable G304 -- a file of the user's
	if err == nil || first.text != "" {                // a k6 archive has no file
		return cmp.Or(string(text), first.text), nil
	}
	return "", &OptionError{option, fmt.Errorf("%w: it is a path, or the text of the file", err)}
}
