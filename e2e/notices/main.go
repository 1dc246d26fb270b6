// Command notices writes the licences of all modules in a binary, for its distribution: go run
// ./notices ROOT BINARY >FILE. ROOT is the folder of the binary's module. Equal texts are written
// once.
package main

import (
	"bufio"
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	err := write(out, os.Args[1:])
	if err = errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

// notice is a text with the files that have it.
type notice struct {
	files []string
	text  string
}

func write(out io.Writer, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("wants the folder of a module and a binary, not %q", args)
	}
	folders, err := modules(args[0], args[1])
	if err != nil {
		return err
	}
	notices, without := []*notice{}, &notice{text: "The source of these comes without a file that says so."}
	byText := map[string]*notice{}
	for _, m := range folders {
		found, err := m.licences()
		if err != nil {
			return err
		}
		if len(found) == 0 && !m.own {
			without.files = append(without.files, m.name)
		}
		for _, file := range found {
			content, err := os.ReadFile(file) //gosec:disable G304 G703 -- of a module that was compiled in
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			text := strings.TrimSpace(strings.ReplaceAll(string(content), "\r\n", "\n"))
			if byText[text] == nil {
				byText[text] = &notice{text: text}
				notices = append(notices, byText[text])
			}
			name := strings.TrimPrefix(file, m.dir+string(filepath.Separator))
			byText[text].files = append(byText[text].files, m.name+": "+filepath.ToSlash(name))
		}
	}
	if len(without.files) > 0 {
		notices = append(notices, without)
	}
	for _, n := range notices {
		rule := strings.Repeat("=", 80)
		files := strings.Join(n.files, "\n")
		if _, err := fmt.Fprintf(out, "%s\n%s\n%s\n\n%s\n\n", rule, files, rule, n.text); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// module is the source of a compiled module.
type module struct {
	name, dir string
	packages  []string // the folders of packages and of embedded files
	own       bool     // of the same checkout: only its copies of other code need a notice
}

// modules returns Go's library and all modules of a binary.
func modules(root, binary string) ([]module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var platform []string
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" {
			platform = append(platform, s.Key+"="+s.Value)
		}
	}
	goroot, err := lines(root, platform, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	const format = `{{with .Module}}{{.Path}}|{{.Dir}}{{end}}|{{.Dir}}{{range .EmbedFiles}}|{{.}}{{end}}`
	packages, err := lines(root, platform, "list", "-deps", "-f", format, info.Path)
	if err != nil {
		return nil, err
	}
	byPath := map[string]module{}
	for _, line := range packages {
		if part := strings.Split(line, "|"); len(part) > 2 {
			m := byPath[part[0]]
			m.dir, m.packages = part[1], append(m.packages, part[2])
			for _, embedded := range part[3:] {
				m.packages = append(m.packages, filepath.Join(part[2], filepath.Dir(embedded)))
			}
			byPath[part[0]] = m
		}
	}
	found := []module{{name: "Go " + strings.TrimPrefix(info.GoVersion, "go"), dir: goroot[0]}}
	for _, m := range info.Deps {
		is := cmp.Or(m.Replace, m)
		in, ok := byPath[m.Path]
		if !ok {
			return nil, fmt.Errorf("%s does not have %s, which is in %s", root, m.Path, binary)
		}
		in.name = strings.TrimSpace(is.Path + " " + is.Version)
		if in.own = strings.HasPrefix(is.Path, "."); in.own {
			in.name = m.Path
		}
		found = append(found, in)
	}
	return found, nil
}

func lines(dir string, env []string, args ...string) ([]string, error) {
	cmd := exec.Command("go", args...) //gosec:disable G204 G702 -- Go, and the names of modules
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

var isLicence = regexp.MustCompile(`(?i)^(third[-_]party[-_])?(un)?(licen[cs]e|copying|copyright|notice|patents)s?` +
	`([-_][^.]*)?(\.(md|txt|rst))?$`)

// licences returns the licence files of a module, and the ones beside its copies of other code.
func (m module) licences() ([]string, error) {
	folders := map[string]bool{m.dir: !m.own}
	for _, dir := range m.packages {
		for ; len(dir) > len(m.dir); dir = filepath.Dir(dir) {
			folders[dir] = true
		}
	}
	var found []string
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		if !folders[dir] {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		for _, entry := range entries {
			if entry.Type().IsRegular() && isLicence.MatchString(entry.Name()) {
				found = append(found, filepath.Join(dir, entry.Name()))
			}
		}
	}
	return found, nil
}
