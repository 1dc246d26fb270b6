package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What `xk6 build --with core --with one driver` generates builds and runs: a main module with blank imports, in which neither a
// go.work nor the replace lines of the modules count.
func TestAnySubsetOfDriversBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a k6")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	const prefix = "github.com/xk6-broker/xk6-broker/extensions/"
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("main.go", `package main

import (
	k6cmd "go.k6.io/k6/v2/cmd"

	_ "`+prefix+`xk6-broker"
	_ "`+prefix+`xk6-nats"
)

func main() { k6cmd.Execute() }
`)
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, said)
		}
		return string(said)
	}
	run("go", "mod", "init", "k6")
	edits := []string{"mod", "edit", "-require=go.k6.io/k6/v2@v2.2.0"}
	for _, module := range []string{"xk6-broker", "xk6-nats"} {
		edits = append(edits, "-require="+prefix+module+"@v0.0.0", "-replace="+prefix+module+"="+filepath.Join(root, module))
	}
	run("go", edits...)
	run("go", "mod", "tidy")
	run("go", "build", "-o", "k6", ".")
	if out := run(filepath.Join(dir, "k6"), "version"); !strings.Contains(out, "k6/x/broker/nats-jetstream") {
		t.Errorf("the drivers are not in it:\n%s", out)
	}
}
