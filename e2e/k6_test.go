// Package e2e runs k6 as its users do, on real brokers, and holds what it says against what can be known otherwise.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// k6Path is the binary under test, built once.
var k6Path string

// stamped is the version that the linker puts into the binary, as into that of a release.
const stamped = "v0.0.0-test"

// sideBySide is how many tests run at a time where the flag -parallel does not say: most of them wait for a k6 that waits itself.
const sideBySide = "5"

func TestMain(m *testing.M) {
	given := false
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", sideBySide); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "xk6-broker-test-")
	if err != nil {
		panic(err)
	}
	k6Path = filepath.Join(dir, "k6")
	args := []string{"build", "-o", k6Path, "-ldflags", "-X github.com/xk6-broker/xk6-broker/extensions/xk6-broker.version=" + stamped}
	if raced {
		args = append(args, "-race")
		if err := os.Setenv("GORACE", "halt_on_error=1"); err != nil {
			panic(err)
		}
	}
	build := exec.Command("go", append(args, "./cmd/k6")...)
	build.Dir = ".."
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// raced tells whether the binary is built with the race detector. A race then ends it at once, with raceCode.
var raced = os.Getenv("BROKER_K6_RACE") != ""

const raceCode = 66

// noRace fails the test where a data race has ended k6.
func noRace(t *testing.T, ended error, stderr string) {
	t.Helper()
	if exit := (*exec.ExitError)(nil); raced && errors.As(ended, &exit) && exit.ExitCode() == raceCode {
		t.Fatalf("k6 has a data race:\n%s", stderr)
	}
}

// result is how a run of k6 ended.
type result struct {
	code   int
	stdout string
	stderr string
}

func (r result) String() string { return fmt.Sprintf("exit %d\n%s\n%s", r.code, r.stdout, r.stderr) }

// k6 runs the binary to its end.
func k6(t *testing.T, env []string, args ...string) result {
	t.Helper()
	return runs(t, k6Path, env, args...)
}

// runs runs any k6 to its end.
func runs(t *testing.T, binary string, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), append([]string{"K6_NO_USAGE_REPORT=true", "BROKER_REPORT_DIR=" + t.TempDir()}, env...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("k6 %v did not end:\n%s\n%s", args, stdout.String(), stderr.String())
	}
	noRace(t, err, stderr.String())
	r := result{stdout: stdout.String(), stderr: stderr.String()}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		r.code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return r
}

// script writes a script and gives its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.js")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVersionListsTheExtensions(t *testing.T) {
	out := k6(t, nil, "version").stdout
	for _, want := range []string{"broker [subcommand]", "k6/x/broker [js]", "k6/x/broker/nats [js]", "k6/x/broker/nats-jetstream [js]"} {
		if !strings.Contains(out, "/extensions/xk6-broker "+stamped+", "+want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
