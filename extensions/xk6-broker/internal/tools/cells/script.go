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

var word = regexp.MustCompile(`[A-Za-z][\w$]*|[_$][\w$]+`)

// imports returns the files of a script: itself and its imports, which k6 lists.
func imports(ctx context.Context, script string) (files []string, err error) {
	k6, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, k6, "deps", "--json", script) //gosec:disable G204 -- k6 itself, and the user's script
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("k6 deps %s: %w: %s", script, err, lastError(log.Bytes()))
	}
	var deps struct{ Imports []string }
	if err := json.Unmarshal(out.Bytes(), &deps); err != nil {
		return nil, fmt.Errorf("k6 deps %s: %w", script, err)
	}
	slices.Sort(deps.Imports)
	for _, name := range deps.Imports {
		u, err := url.Parse(name)
		if err != nil || u.Scheme != "file" {
			continue
		}
		file := u.Path
		if runtime.GOOS == "windows" {
			file = strings.TrimPrefix(file, "/") // before the drive
		}
		files = append(files, filepath.FromSlash(file))
	}
	return files, nil
}

// Script returns the facts of a script: its hash, and the variables of this process that it reads.
// The names are of settings; an error is a setting that the script does not read.
func Script(ctx context.Context, path string, names []string) (Facts, error) {
	files, err := imports(ctx, path)
	if err != nil {
		return nil, err
	}
	words, hash := map[string]bool{}, sha256.New()
	for _, name := range []string{"BROKER_WARMUP", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG"} {
		words[name] = true // the module and Go read them
	}
	for _, file := range files {
		text, err := os.ReadFile(file) //gosec:disable G304 -- a file of the user's
		if err != nil {
			return nil, err
		}
		hash.Write(text)
		for _, found := range word.FindAllString(string(text), -1) {
			words[found] = true
		}
	}
	read := func(name string) bool {
		reserved := strings.HasPrefix(name, "BROKER_REPORT") || slices.Contains(own, name)
		return !reserved && (words[name] || strings.HasPrefix(name, "K6_"))
	}
	for _, name := range names {
		if !read(name) {
			return nil, fmt.Errorf("%s: the script never reads it, or each run has its own", name)
		}
	}
	facts := Facts{"script " + filepath.Base(path): hex.EncodeToString(hash.Sum(nil))}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if value != "" && read(name) && !slices.Contains(names, name) {
			facts["environment "+name] = Settings{name: value}.Show(name)
		}
	}
	return facts, nil
}

// own are variables that make a run a part of another test. The runner sets them itself.
var own = []string{"BROKER_RUN", "BROKER_PROCESSES", "BROKER_COORDINATOR"}
