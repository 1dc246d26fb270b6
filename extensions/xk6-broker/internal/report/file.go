package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// longestName bounds the part of a file's name that is from a topic or a script, in bytes.
const longestName = 100

// Sanitise returns a name for a file: letters, digits, '.', '_' and '-', the first not '.' or '-'.
func Sanitise(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	safe = safe[:min(len(safe), longestName)]
	if strings.HasPrefix(safe, ".") || strings.HasPrefix(safe, "-") {
		safe = "_" + safe[1:]
	}
	return safe
}

// fileNames returns a name for the files of each topic. No two are equal if case does not count.
func fileNames(r *result.Result) []string {
	names := make([]string, len(r.Topics))
	taken := map[string]bool{"": true}
	for i, t := range r.Topics {
		safe := Sanitise(t.Topic)
		names[i] = safe
		for n := 2; taken[strings.ToLower(names[i])]; n++ {
			names[i] = fmt.Sprintf("%s-%d", safe, n)
		}
		taken[strings.ToLower(names[i])] = true
	}
	return names
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path) //gosec:disable G304 -- a file of the results
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Sync(), file.Close())
}

// WriteAtomic writes one file that is complete at all times: a temporary file gets its name.
func WriteAtomic(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	err = errors.Join(write(file), file.Chmod(0o644), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// WriteSummary writes a result as JSON.
func WriteSummary(w io.Writer, r *result.Result) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ") // more would be half of the file
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	return nil
}
