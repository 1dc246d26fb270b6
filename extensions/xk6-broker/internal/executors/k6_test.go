package executors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// k6 runs the test binary as k6, see runProbe.
type k6 struct {
	under []string // a command that runs it
	args  []string
	env   map[string]string
	begun func(process *os.Process) // while it runs
}

// result is what came of it.
type result struct {
	output string
	exit   int
	cpu    time.Duration
	Marks  []mark
	Totals []struct {
		Scenario               string
		Due, Started, Unserved uint64
	}
}

// mark is an iteration, recorded by the probe.
type mark struct {
	Scenario         string
	Index            uint64
	Due, Started, At int64 // by Now of package driver
	Iteration, VU    uint64
}

func (k k6) run(tb testing.TB) *result {
	tb.Helper()
	if testing.Short() {
		tb.Skip("part of make test-full")
	}
	probe := filepath.Join(tb.TempDir(), "probe.json")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	command := slices.Concat(k.under, []string{os.Args[0]}, k.args)
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = append(os.Environ(), "PROBE="+probe, "K6_NO_USAGE_REPORT=true", "K6_NO_COLOR=true", "K6_AUTO_EXTENSION_RESOLUTION=false")
	for name, value := range k.env {
		c.Env = append(c.Env, name+"="+value)
	}
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	if err := c.Start(); err != nil {
		tb.Fatal(err)
	}
	if k.begun != nil {
		k.begun(c.Process)
	}
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	r := &result{output: output.String(), exit: c.ProcessState.ExitCode(), cpu: c.ProcessState.UserTime() + c.ProcessState.SystemTime()}
	if text, err := os.ReadFile(probe); err == nil {
		if err := json.Unmarshal(text, r); err != nil {
			tb.Fatal(err)
		}
	}
	return r
}
