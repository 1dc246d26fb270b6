// Package types holds the test of the types for scripts, the npm package of the repository, in the hands of TypeScript.
package types

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/executors"
)

const repository = "../../../.."

// Every script that the repository shows has no mistake, and mistakes.js has those that it says.
func TestInTypeScript(t *testing.T) {
	compiler := typescript(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(repository+"/scenarios")); err != nil {
		t.Fatal(err)
	}
	for _, document := range documents(t) {
		for i, script := range scriptsIn(t, document) {
			write(t, dir, fmt.Sprintf("%s.%d.js", filepath.Base(document), i+1), script)
		}
	}
	annotate(t, dir)
	for _, own := range []string{"mistakes.js", "uses.js"} {
		write(t, dir, own, read(t, own))
	}
	for _, declared := range []string{"index.d.ts", "drivers.d.ts", "result.d.ts"} {
		write(t, dir, declared, read(t, repository+"/types/"+declared))
	}
	write(t, dir, "executors.ts", scenarios(t))
	write(t, dir, "tsconfig.json", config(t))
	cmd := exec.CommandContext(t.Context(), "node", compiler, "--pretty", "false")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// typescript is the compiler's path. Without it the test is skipped, unless everything is required.
func typescript(t *testing.T) string {
	t.Helper()
	required := os.Getenv("BROKER_REQUIRE") == "all" && os.Getenv("BROKER_NODE_TEST") != "skip"
	missing := func(what string) {
		if required {
			t.Fatalf("BROKER_REQUIRE=all, and %s", what)
		}
		t.Skip(what)
	}
	if _, err := exec.LookPath("node"); err != nil {
		missing("there is no node: the types are not tested")
	}
	compiler, err := filepath.Abs("node_modules/typescript/bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(compiler); err != nil {
		missing("run npm ci --ignore-scripts in types: the types are not tested")
	}
	return compiler
}

var jsconfig = regexp.MustCompile("(?ms)^```json\n(.*?)^```$")

// The package as npm packs it, installed into a project of one's own, has TypeScript find the mistakes of a script with the jsconfig.json of
// the package's README, and none in the scripts of the repository.
func TestThePackage(t *testing.T) {
	if testing.Short() {
		t.Skip("part of make test-full")
	}
	typescript(t)
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} { // of TypeScript and of k6's types, at their versions
		write(t, dir, name, read(t, name))
	}
	run(t, dir, "npm", "install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error", packed(t))
	shown := jsconfig.FindStringSubmatch(read(t, repository+"/types/README.md"))
	if shown == nil {
		t.Fatal("the package's README shows no jsconfig.json")
	}
	write(t, dir, "jsconfig.json", shown[1])

	scripts := filepath.Join(dir, "scripts")
	if err := os.CopyFS(scripts, os.DirFS(repository+"/scenarios")); err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{"README.md", "types/README.md"} {
		shown := scriptsIn(t, repository+"/"+document)
		if len(shown) == 0 {
			t.Fatalf("%s shows no script", document)
		}
		for i, script := range shown {
			write(t, scripts, fmt.Sprintf("%s.%d.js", strings.ReplaceAll(document, "/", "."), i+1), script)
		}
	}
	annotate(t, scripts)
	run(t, dir, "npx", "--no-install", "tsc", "-p", "jsconfig.json", "--pretty", "false")

	mistyped := strings.NewReplacer("maxInFlight", "maxInflight", "acks:", "aks:", "arrivals:", "arivals:", "orders.send", "orders.sned").
		Replace(scriptsIn(t, repository+"/types/README.md")[0])
	write(t, scripts, "mistyped.js", mistyped)
	out, err := command(t, dir, "npx", "--no-install", "tsc", "-p", "jsconfig.json", "--pretty", "false").CombinedOutput()
	if err == nil {
		t.Error("mistakes are none")
	}
	for _, name := range []string{"maxInflight", "aks", "arivals", "sned"} {
		if !strings.Contains(string(out), "'"+name+"' does not exist") {
			t.Errorf("%s is not found:\n%s", name, out)
		}
	}
}

// packed is the package, which has nothing in it but types and what is said of them.
func packed(t *testing.T) string {
	t.Helper()
	if read(t, repository+"/types/LICENSE") != read(t, repository+"/LICENSE") {
		t.Error("the package's licence is another than the repository's")
	}
	folder := t.TempDir()
	var packages []struct {
		Filename string
		Files    []struct{ Path string }
	}
	said := run(t, repository+"/types", "npm", "pack", "--json", "--ignore-scripts", "--loglevel=error", "--pack-destination", folder)
	if err := json.Unmarshal([]byte(said), &packages); err != nil || len(packages) != 1 {
		t.Fatalf("npm pack: %v\n%s", err, said)
	}
	var files []string
	for _, f := range packages[0].Files {
		files = append(files, f.Path)
	}
	slices.Sort(files)
	if want := []string{"LICENSE", "README.md", "drivers.d.ts", "index.d.ts", "package.json", "result.d.ts"}; !slices.Equal(files, want) {
		t.Errorf("the package has %v, not %v", files, want)
	}
	archives, err := filepath.Glob(folder + "/*.tgz")
	if err != nil || len(archives) != 1 {
		t.Fatal("no archive", err)
	}
	return archives[0]
}

func command(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	return cmd
}

// run gives what a command says.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := command(t, dir, name, args...)
	var said, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &errors
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, said.String(), errors.String())
	}
	return said.String()
}

func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(repository + "/docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatal("no documents", err)
	}
	return append(docs, repository+"/README.md")
}

var fenced = regexp.MustCompile("(?ms)^```js\n(.*?)^```$")

// scriptsIn gives the scripts that a document shows; these two have some.
func scriptsIn(t *testing.T, document string) (scripts []string) {
	t.Helper()
	for _, found := range fenced.FindAllStringSubmatch(read(t, document), -1) {
		scripts = append(scripts, found[1])
	}
	if name := filepath.Base(document); len(scripts) == 0 && (name == "README.md" || name == "load-models.md") {
		t.Fatalf("%s shows no script", document)
	}
	return scripts
}

// annotate says of all options that they are the module's, on the same line, as an editor would be told.
func annotate(t *testing.T, dir string) {
	t.Helper()
	scripts, err := filepath.Glob(dir + "/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, script := range scripts {
		text := read(t, script)
		if strings.Contains(text, "export const study = ") { // says what it is by itself
			continue
		}
		const options = "export const options = "
		if !strings.Contains(text, options) {
			t.Fatalf("%s has no options:\n%s", filepath.Base(script), text)
		}
		write(t, dir, filepath.Base(script), strings.Replace(text, options, "/** @type {import('k6/x/broker').Options} */ "+options, 1))
	}
}

// scenarios holds the types of scenarios against the options that the executors read.
func scenarios(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("import { ConsumersScenario, OpenArrivalRateScenario } from 'k6/x/broker';\n\ntype Names<T> = T extends unknown ? keyof T : never;\n\n")
	for name, config := range map[string]any{
		"OpenArrivalRateScenario": executors.Config{Stages: []executors.Stage{{}}}, "ConsumersScenario": executors.ConsumersConfig{},
	} {
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		options := map[string]any{"options": nil} // of k6's base, which leaves it out where it is empty
		if err := json.Unmarshal(text, &options); err != nil {
			t.Fatal(err)
		}
		names, err := json.Marshal(options)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "export const of%s: Record<Names<%s>, unknown> = %s;\n", name, name, names)
	}
	return b.String()
}

// config is that of a strict project in plain JavaScript, where what has no type is anything.
func config(t *testing.T) string {
	t.Helper()
	k6, err := filepath.Abs("node_modules/@types/k6")
	if err != nil {
		t.Fatal(err)
	}
	k6 = filepath.ToSlash(k6)
	text, err := json.MarshalIndent(map[string]any{
		"compilerOptions": map[string]any{
			"noEmit": true, "strict": true, "noImplicitAny": false, "useUnknownInCatchVariables": false, "allowJs": true, "checkJs": true,
			"target": "es2022", "lib": []string{"es2022"}, "module": "esnext", "moduleResolution": "bundler", "types": []string{},
			"paths": map[string]any{"k6": []string{k6 + "/index.d.ts"}, "k6/*": []string{k6 + "/*"}},
		},
		"files":   []string{"index.d.ts"},
		"include": []string{"**/*.js", "*.ts"},
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
