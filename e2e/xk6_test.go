package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What `xk6 build --with MODULE ...` generates builds and runs: a main module with blank imports, in which neither a go.work nor the replace
// lines of the modules count. Here they are this checkout's.
func TestBuildsByXk6(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds k6")
	}
	for name, with := range map[string][]string{"everything": {""}, "a subset": {"/extensions/xk6-broker", "/extensions/xk6-nats"}} {
		t.Run(name, func(t *testing.T) {
			if out := builtWith(t, with); !strings.Contains(out, "k6/x/broker/nats-jetstream") {
				t.Errorf("the drivers are not in it:\n%s", out)
			}
		})
	}
}

// builtWith is what a k6 with these modules says of itself.
func builtWith(t *testing.T, with []string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob(filepath.Join(root, "extensions/*/go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
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
	const prefix = "github.com/xk6-broker/xk6-broker"
	main := "package main\n\nimport (\n\tk6cmd \"go.k6.io/k6/v2/cmd\"\n\n"
	edits := []string{"mod", "edit", "-require=go.k6.io/k6/v2@v2.2.0", "-replace=" + prefix + "=" + root}
	for _, module := range modules {
		folder := filepath.Dir(module)
		edits = append(edits, "-replace="+prefix+"/extensions/"+filepath.Base(folder)+"="+folder)
	}
	for _, module := range with {
		main += fmt.Sprintf("\t_ %q\n", prefix+module)
		edits = append(edits, "-require="+prefix+module+"@v0.0.0")
	}
	main += ")\n\nfunc main() { k6cmd.Execute() }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	run("go", "mod", "init", "k6")
	run("go", edits...)
	run("go", "mod", "tidy")
	run("go", "build", "-o", "k6", ".")
	return run(filepath.Join(dir, "k6"), "version")
}
