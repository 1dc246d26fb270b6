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

// Script is a script's text, with the files that it imports.
type Script struct {
	Path   string
	Hash   string
	Names  []string // that it reads from __ENV by its text
	source []byte
}

var readByName = regexp.MustCompile(`__ENV\s*(?:\??\.\s*([A-Za-z_$][\w$]*)|(?:\?\.)?\[\s*['"` + "`" + `]([^'"` + "`" + `]+)['"` + "`" + `]\s*\])` +
	`|['"` + "`" + `]([A-Z][A-Z0-9_]+)['"` + "`" + `]`) // the last is an argument of a function that reads it

// Inspect reads a script and the files that it imports, which k6 lists.
func Inspect(ctx context.Context, k6, script string) (*Script, error) {
	out, err := output(ctx, nil, k6, "deps", "--json", script)
	if err != nil {
		return nil, err
	}
	var deps struct{ Imports []string }
	if err := json.Unmarshal(out, &deps); err != nil {
		return nil, fmt.Errorf("study: k6 deps %s: %w", script, err)
	}
	s := &Script{Path: script}
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
		s.source = append(append(s.source, text...), '\n')
	}
	sum := sha256.Sum256(s.source)
	s.Hash = hex.EncodeToString(sum[:])
	names := map[string]bool{}
	for _, m := range readByName.FindAllSubmatch(s.source, -1) {
		names[string(bytes.Join(m[1:], nil))] = true
	}
	s.Names = slices.Sorted(maps.Keys(names))
	return s, nil
}

// localPath returns the path of a file URL; on Windows there is a slash before the drive.
func localPath(path string) string {
	if len(path) > 2 && path[0] == '/' && path[2] == ':' {
		return path[1:]
	}
	return path
}

// ownSettings are those that Go and the module read by themselves.
var ownSettings = []string{"BROKER_WARMUP", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG"}

// Reads reports whether the script may read a setting: k6 or the module does, or its name is a word of the text.
func (s *Script) Reads(name string) bool {
	if strings.HasPrefix(name, "K6_") || slices.Contains(ownSettings, name) {
		return true
	}
	return regexp.MustCompile(`(^|[^\w$])` + regexp.QuoteMeta(name) + `($|[^\w$])`).Match(s.source)
}

// ofEnvironment marks the facts of the process's environment.
const ofEnvironment = ", of the environment"

// Environment returns the variables of the process that the script or the module reads, without those that the study
// sets.
func (s *Script) Environment(set func(name string) bool) (facts []Fact) {
	for _, one := range slices.Sorted(slices.Values(os.Environ())) {
		name, value, _ := strings.Cut(one, "=")
		if value != "" && (slices.Contains(s.Names, name) || slices.Contains(ownSettings, name)) && !Reserved(name) && !set(name) {
			facts = append(facts, Fact{name + ofEnvironment, Value{name, value}.Shown()})
		}
	}
	return facts
}

// Check returns an error if the script does not read a setting, or if it or k6 refuses a value.
func (s *Script) Check(ctx context.Context, k6 string, p Plan) error {
	for _, setting := range p.Settings {
		if !s.Reads(setting.Name) {
			return fmt.Errorf("%s: %s never reads that: it reads %s", setting.Name, filepath.Base(s.Path), strings.Join(s.Names, ", "))
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
	for i := range longest { // every value of every setting once
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

// output returns what k6 prints, or its last error.
func output(ctx context.Context, env []string, k6 string, args ...string) ([]byte, error) {
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, k6, args...) //gosec:disable G204 -- k6 itself, and the user's script
	cmd.Env, cmd.Stdout, cmd.Stderr = slices.Concat(os.Environ(), []string{"BROKER_RUN=", "BROKER_PROCESSES=", "BROKER_COORDINATOR="}, env), &out, &log
	if err := cmd.Run(); err != nil {
		if message := lastError(log.Bytes()); message != "" {
			return nil, fmt.Errorf("k6 %s: %s", args[0], message)
		}
		return nil, fmt.Errorf("k6 %s: %w", args[0], err)
	}
	return out.Bytes(), nil
}
