package cells

import (
	"bytes"
	"cmp"
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

// Script is a script with the files that it imports.
type Script struct {
	Hash  string
	words map[string]bool // of the source
}

var word = regexp.MustCompile(`[A-Za-z][\w$]*|[_$][\w$]+`)

// Inspect reads a script and the files that it imports, which k6 lists.
func Inspect(ctx context.Context, k6, path string) (*Script, error) {
	out, err := output(ctx, k6, "deps", "--json", path)
	if err != nil {
		return nil, err
	}
	var deps struct{ Imports []string }
	if err := json.Unmarshal(out, &deps); err != nil {
		return nil, fmt.Errorf("k6 deps %s: %w", path, err)
	}
	slices.Sort(deps.Imports)
	s := &Script{words: map[string]bool{}}
	hash := sha256.New()
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
	s.Hash = hex.EncodeToString(hash.Sum(nil))
	return s, nil
}

// Reads reports whether a variable has an effect: it is one of k6, of the module or of Go, or a word of the script.
func (s *Script) Reads(name string) bool {
	switch name {
	case "BROKER_WARMUP", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG":
		return true
	}
	return strings.HasPrefix(name, "K6_") || s.words[name]
}

// Environment returns the variables of this process that the script reads, without those that the cells set.
func (s *Script) Environment(set map[string]bool) Facts {
	facts := Facts{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if value != "" && s.Reads(name) && !Reserved(name) && !set[name] {
			facts["environment "+name] = Value{name, value}.Shown()
		}
	}
	return facts
}

// output returns the output of a k6 command, or its last error.
func output(ctx context.Context, k6 string, args ...string) ([]byte, error) {
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, k6, args...) //gosec:disable G204 -- k6 itself, and the user's script
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("k6 %s: %s", args[0], cmp.Or(lastError(log.Bytes()), err.Error()))
	}
	return out.Bytes(), nil
}
