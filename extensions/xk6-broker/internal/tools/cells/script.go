package cells

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// script is a script with the files that it imports.
type script struct {
	hash  string
	words map[string]bool // of the source
}

var word = regexp.MustCompile(`[A-Za-z][\w$]*|[_$][\w$]+`)

// inspect reads a script and the files that it imports, which k6 lists.
func inspect(ctx context.Context, path string) (*script, error) {
	k6, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, k6, "deps", "--json", path) //gosec:disable G204 -- k6 itself, and the user's script
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("k6 deps %s: %w: %s", path, err, lastError(log.Bytes()))
	}
	var deps struct{ Imports []string }
	if err := json.Unmarshal(out.Bytes(), &deps); err != nil {
		return nil, fmt.Errorf("k6 deps %s: %w", path, err)
	}
	s, hash := &script{words: map[string]bool{}}, sha256.New()
	slices.Sort(deps.Imports)
	for _, name := range deps.Imports {
		u, err := url.Parse(name)
		if err != nil || u.Scheme != "file" {
			continue
		}
		path := u.Path
		if runtime.GOOS == "windows" {
			path = strings.TrimPrefix(path, "/") // before the drive
		}
		text, err := os.ReadFile(filepath.FromSlash(path)) //gosec:disable G304 -- a file of the user's
		if err != nil {
			return nil, err
		}
		hash.Write(text)
		for _, found := range word.FindAllString(string(text), -1) {
			s.words[found] = true
		}
	}
	s.hash = hex.EncodeToString(hash.Sum(nil))
	return s, nil
}

// reads reports whether a variable has an effect: it is one of k6, of the module or of Go, or a
// word of the script.
func (s *script) reads(name string) bool {
	switch name {
	case "BROKER_WARMUP", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG":
		return true
	}
	return strings.HasPrefix(name, "K6_") || s.words[name]
}

// Script returns the facts of a script: its hash, and the variables of this process that it reads.
// The names are of settings; an error is a setting that the script does not read.
func Script(ctx context.Context, path string, names []string) (Facts, error) {
	s, err := inspect(ctx, path)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if reserved(name) || !s.reads(name) {
			return nil, fmt.Errorf("%s: the script never reads it, or each run has its own", name)
		}
	}
	facts := Facts{"script " + filepath.Base(path): s.hash}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if value != "" && s.reads(name) && !reserved(name) && !slices.Contains(names, name) {
			facts["environment "+name] = Value{name, value}.Shown()
		}
	}
	return facts, nil
}
