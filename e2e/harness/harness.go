// Package harness runs k6 as its users do: the binary, scripts, URLs of brokers, and results, for
// the tests of this module.
package harness

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// Binary is the k6 under test: the one that BROKER_K6 names, or one that Main builds.
var Binary string

// setVersion is the linker's flag for the version, as in a release, stamped the version of a binary
// that Main builds.
const (
	setVersion = "-X github.com/xk6-broker/xk6-broker/extensions/xk6-broker.version="
	stamped    = "v0.0.0-test"
)

// Version returns the version that the binary must report: the linker's, or that of a plain build.
func Version(t *testing.T) string {
	t.Helper()
	info, err := buildinfo.ReadFile(Binary)
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range info.Settings {
		if _, version, ok := strings.Cut(setting.Value, setVersion); ok && setting.Key == "-ldflags" {
			return strings.Fields(version)[0]
		}
	}
	return "(devel)"
}

// Main runs the tests of a package, for its TestMain. parallel is the number of parallel tests
// without the flag -parallel: most of them wait for a waiting k6.
func Main(m *testing.M, parallel string) {
	given := false
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", parallel); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "xk6-broker-test-")
	if err != nil {
		panic(err)
	}
	if Binary = os.Getenv("BROKER_K6"); Binary == "" {
		Binary = build(dir)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func build(dir string) string {
	path := filepath.Join(dir, "k6")
	args := []string{"build", "-o", path, "-ldflags", setVersion + stamped}
	if Raced {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/k6")...)
	cmd.Dir = Repo()
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		panic(err)
	}
	return path
}

// Raced reports whether the binary is built with the race detector. A race then ends it at once,
// with raceCode.
var Raced = os.Getenv("BROKER_K6_RACE") != ""

const raceCode = 66

func init() {
	if Raced {
		if err := os.Setenv("GORACE", "halt_on_error=1"); err != nil {
			panic(err)
		}
	}
}

// NoRace fails the test if a data race has ended k6.
func NoRace(t *testing.T, ended error, stderr string) {
	t.Helper()
	if exit := (*exec.ExitError)(nil); Raced && errors.As(ended, &exit) && exit.ExitCode() == raceCode {
		t.Fatalf("k6 has a data race:\n%s", stderr)
	}
}

// Result is the end of a run of k6.
type Result struct {
	Code   int
	Stdout string
	Stderr string
}

func (r Result) String() string { return fmt.Sprintf("exit %d\n%s\n%s", r.Code, r.Stdout, r.Stderr) }

// Ended returns the Result of a process.
func Ended(t *testing.T, err error, stdout, stderr string) Result {
	t.Helper()
	NoRace(t, err, stderr)
	r := Result{Stdout: stdout, Stderr: stderr}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		r.Code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return r
}

// K6 runs the binary to its end.
func K6(t *testing.T, env []string, args ...string) Result {
	t.Helper()
	return Run(t, Binary, env, args...)
}

// Run runs any k6 to its end. Only the package's -timeout limits it.
func Run(t *testing.T, binary string, env []string, args ...string) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := Command(t.Context(), binary, append([]string{"BROKER_REPORT_DIR=" + t.TempDir()}, env...), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return Ended(t, cmd.Run(), stdout.String(), stderr.String())
}

// Command is a run of a k6 that has not begun.
func Command(ctx context.Context, binary string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(append(os.Environ(), "K6_NO_USAGE_REPORT=true"), env...)
	return cmd
}

// Script writes a script and returns its path.
func Script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.js")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var root = func() string {
	for folder, err := os.Getwd(); err == nil && folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "docker-compose.yml")); err == nil {
			return folder
		}
	}
	panic("not in a checkout")
}()

// Repo returns a path in this checkout.
func Repo(elements ...string) string { return filepath.Join(append([]string{root}, elements...)...) }

// Quick is the scenario of short runs.
var Quick = Repo("scenarios/producer-consumer.js")

// Settings returns the environment of a short run whose results go to a folder.
func Settings(dir, name string, more ...string) []string {
	common := []string{"BROKER_REPORT_DIR=" + dir, "BROKER_REPORT_NAME=" + name, "DURATION=2s", "RATE=500"}
	return append(common, more...)
}

// Read reads a file.
func Read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Names returns the names in a folder; none if there is no such folder.
func Names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Same fails if the results of a merged test and of a single process differ in messages or account.
func Same(t *testing.T, merged, single *summary.Summary) {
	t.Helper()
	a, b := merged.Topics[0], single.Topics[0]
	for _, count := range []string{"due", "sent", "confirmed", "received", "bytes_sent"} {
		if a.Counts[count] != b.Counts[count] || b.Counts[count] == 0 {
			t.Errorf("%s: %d together, %d alone", count, a.Counts[count], b.Counts[count])
		}
	}
	if n := a.Trends["e2e_latency"].Count; n != a.Counts["received"] {
		t.Errorf("%d messages are in the latency, and %d were received", n, a.Counts["received"])
	}
	g := a.Groups[0]
	if g.Expected != uint64(a.Counts["sent"]) || g.Lost+g.Missing+g.Duplicated+g.Foreign != 0 {
		t.Errorf("%+v", g.Account)
	}
}
