// Package types holds the test of the types for scripts, index.d.ts of the repository, in the hands of TypeScript.
package types

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	if err := os.Mkdir(filepath.Join(dir, "types"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, declared := range []string{"index.d.ts", "types/drivers.d.ts", "types/result.d.ts"} {
		write(t, dir, declared, read(t, repository+"/"+declared))
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

// The jsconfig.json that the README shows finds the mistakes of a script outside of the repository, and none where there is none.
func TestInAProjectOfOnesOwn(t *testing.T) {
	compiler := typescript(t)
	dir := t.TempDir()
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	clone, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	shown := jsconfig.FindStringSubmatch(read(t, repository+"/README.md"))
	if shown == nil || !strings.Contains(shown[1], `"../xk6-broker/`) {
		t.Fatal("the README shows no jsconfig.json")
	}
	write(t, dir, "jsconfig.json", strings.Replace(shown[1], "../xk6-broker", filepath.ToSlash(clone), 1))
	const script = `import { check } from 'k6';
import broker from 'k6/x/broker';
const conn = broker.connect('jetstream://127.0.0.1:4222');
const p = conn.producer('orders', { maxInFlight: 3 });
const c = conn.consumer('orders', { group: 'g' });
/** @type {import('k6/x/broker').Options} */
export const options = { scenarios: { s: { executor: 'open-arrival-rate', rate: 9, duration: '1s', preAllocatedVUs: 1, arrivals: 'poisson' } } };
export default async function () {
  await p.send({ body: __ENV.BODY });
  check(await c.receive(), { 'one came': (list) => list.length === 1 });
}
`
	compile := func(script string) string {
		write(t, dir, "script.js", script)
		cmd := exec.CommandContext(t.Context(), "node", compiler, "-p", "jsconfig.json", "--pretty", "false")
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput() // its exit code says no more
		return string(out)
	}
	if out := compile(script); out != "" {
		t.Errorf("a script without mistakes:\n%s", out)
	}
	mistyped := strings.NewReplacer("maxInFlight", "maxInflight", "group:", "gruop:", "arrivals:", "arivals:", "p.send", "p.sned").Replace(script)
	out := compile(mistyped)
	for _, name := range []string{"maxInflight", "gruop", "arivals", "sned"} {
		if !strings.Contains(out, "'"+name+"' does not exist") {
			t.Errorf("%s is not found:\n%s", name, out)
		}
	}
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
	if name := filepath.Base(document); len(scripts) == 0 && (name == "README.md" || name == "executors.md") {
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
