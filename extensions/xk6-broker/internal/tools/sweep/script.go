package sweep

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Script is what is known of a script before it runs.
type Script struct {
	Path   string
	Hash   string   // of the script and the files that it imports
	Names  []string // that it reads from __ENV, as far as its text shows
	source []byte
}

var (
	readByName   = regexp.MustCompile(`__ENV\s*(?:\??\.\s*([A-Za-z_$][\w$]*)|(?:\?\.)?\[\s*['"` + "`" + `]([^'"` + "`" + `]+)['"` + "`" + `]\s*\])`)
	destructured = regexp.MustCompile(`\{([^{}]*)\}\s*=\s*__ENV\b`)
	upper        = regexp.MustCompile(`['"` + "`" + `]([A-Z][A-Z0-9_]+)['"` + "`" + `]`)
)

// Inspect has k6 find the files that a script imports, and reads them.
func Inspect(ctx context.Context, k6, script string) (*Script, error) {
	out, err := output(ctx, nil, k6, "deps", "--json", script)
	if err != nil {
		return nil, err
	}
	var deps struct{ Imports []string }
	if err := json.Unmarshal(out, &deps); err != nil {
		return nil, fmt.Errorf("study: what k6 says of %s is not understood: %w", script, err)
	}
	s := &Script{Path: script}
	sum := sha256.New()
	slices.Sort(deps.Imports)
	for _, name := range deps.Imports {
		u, err := url.Parse(name)
		if err != nil || u.Scheme != "file" {
			continue
		}
		text, err := os.ReadFile(filepath.FromSlash(localPath(u.Path)))
		if err != nil {
			return nil, fmt.Errorf("study: %w", err)
		}
		_, _ = fmt.Fprintf(sum, "%d\n", len(text)) // a hash takes all that is written
		_, _ = sum.Write(text)
		s.source = append(append(s.source, text...), '\n')
	}
	s.Hash = hex.EncodeToString(sum.Sum(nil))
	names := map[string]bool{}
	for _, m := range readByName.FindAllSubmatch(s.source, -1) {
		names[string(m[1])+string(m[2])] = true
	}
	for _, m := range destructured.FindAllSubmatch(s.source, -1) {
		for of := range strings.SplitSeq(string(m[1]), ",") {
			name, _, _ := strings.Cut(of, ":")
			name, _, _ = strings.Cut(name, "=")
			names[strings.TrimSpace(name)] = true
		}
	}
	for _, m := range upper.FindAllSubmatch(s.source, -1) { // that a function is given which reads it
		names[string(m[1])] = true
	}
	s.Names = slices.Sorted(maps.Keys(names))
	return s, nil
}

// localPath is the path of a file URL; on Windows there is a slash before the drive.
func localPath(path string) string {
	if len(path) > 2 && path[0] == '/' && path[2] == ':' {
		return path[1:]
	}
	return path
}

// Reads tells whether the script may read a setting: k6 and this module have settings of their own, and of a script it can only be known whether the
// name stands in its text as a word.
func (s *Script) Reads(name string) bool {
	if strings.HasPrefix(name, "K6_") || slices.Contains(own, name) {
		return true
	}
	word := regexp.MustCompile(`(^|[^\w$])` + regexp.QuoteMeta(name) + `($|[^\w$])`)
	return word.Match(s.source)
}

// Check finds settings that the script does not read, and has it initialised with every value of every setting once: what it, or k6, refuses is known
// before anything runs.
func (s *Script) Check(ctx context.Context, k6 string, p Plan) error {
	for _, of := range p.Settings {
		if !s.Reads(of.Name) {
			return fmt.Errorf("%s: %s never reads that: it reads %s", of.Name, filepath.Base(s.Path), strings.Join(s.Names, ", "))
		}
	}
	axes, err := p.Axes()
	if err != nil {
		return err
	}
	longest := 0
	for _, a := range axes {
		longest = max(longest, len(a.Points))
	}
	for i := range longest {
		var values Values
		for _, a := range axes {
			values = append(values, a.Points[i%len(a.Points)]...)
		}
		if _, err := output(ctx, values.environment(), k6, "inspect", "--include-system-env-vars", "--execution-requirements", s.Path); err != nil {
			return fmt.Errorf("with %s: %w", values, err)
		}
	}
	return nil
}

// output is what k6 prints; where it fails, the error is what it says.
func output(ctx context.Context, env []string, k6 string, args ...string) ([]byte, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, k6, args...) //gosec:disable G204 -- k6 itself, and the user's script
	cmd.Env, cmd.Stdout, cmd.Stderr = slices.Concat(os.Environ(), []string{"BROKER_RUN=", "BROKER_PROCESSES=", "BROKER_COORDINATOR="}, env), &out, &said
	if err := cmd.Run(); err != nil {
		if message := lastError(said.Bytes()); message != "" {
			return nil, fmt.Errorf("k6 %s: %s", args[0], message)
		}
		return nil, fmt.Errorf("k6 %s: %w", args[0], err)
	}
	return out.Bytes(), nil
}
