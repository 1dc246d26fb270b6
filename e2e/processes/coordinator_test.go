package processes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// coordinated is a coordinator that runs beside a test.
type coordinated struct {
	out, address string
	wait         func() harness.Result
}

// coordinate runs a coordinator of so many processes.
func coordinate(t *testing.T, processes int, options ...string) *coordinated {
	t.Helper()
	c := &coordinated{out: filepath.Join(t.TempDir(), "whole"), address: loopback(t)}
	var ended sync.WaitGroup
	var r harness.Result
	ended.Go(func() {
		args := []string{"x", "broker", "coordinator", "--processes", fmt.Sprint(processes), "--listen", c.address, "-o", c.out, "--timeout", "30s"}
		r = harness.K6(t, nil, append(args, options...)...)
	})
	c.wait = func() harness.Result { ended.Wait(); return r }
	return c
}

func (c *coordinated) env() string { return "BROKER_COORDINATOR=http://" + c.address }

// whole is the joined result.
func (c *coordinated) whole(t *testing.T) (harness.Result, *summary.Summary) {
	t.Helper()
	r := c.wait()
	whole, err := summary.Read(c.out)
	if err != nil {
		t.Fatal(err, r)
	}
	r.Stdout = strings.Join(strings.Fields(r.Stdout), " ") // as it was before it was broken into lines
	return r, whole
}

// gathering is a test of processes with a coordinator.
type gathering struct {
	t            *testing.T
	dir, address string
	env          []string
}

func newGathering(t *testing.T) *gathering {
	t.Helper()
	id, address := fmt.Sprintf("coordinator-%d-%d", os.Getpid(), time.Now().UnixNano()), loopback(t)
	return &gathering{t, t.TempDir(), address, []string{
		"BROKER_URL=" + harness.URL(t, "BROKER_URL_NATS_JETSTREAM"), "TOPIC=" + id, "BROKER_COORDINATOR=http://" + address, "BROKER_COORDINATOR_TOKEN=hush",
	}}
}

func (g *gathering) coordinator(want string, options ...string) *background {
	g.t.Helper()
	return startK6(g.t, want, []string{"BROKER_COORDINATOR_TOKEN=hush"},
		append([]string{"x", "broker", "coordinator", "--listen", g.address, "-o", filepath.Join(g.dir, "whole")}, options...)...)
}

func (g *gathering) process(name, duration, want string, env ...string) *background {
	g.t.Helper()
	return startK6(g.t, want, append(append(harness.Settings(filepath.Join(g.dir, "local"), name, g.env...), "DURATION="+duration, "RATE=100"), env...),
		"run", "--quiet", "--no-thresholds", "--address", "", harness.Quick)
}

// A killed process is named, and the whole is not valid.
func TestCoordinator_ProcessKilled_Named(t *testing.T) {
	t.Parallel()
	g := newGathering(t)
	coordinator := g.coordinator("joined, 2 of 2", "--processes", "2", "--timeout", "5s")
	one, killed := g.process("one", "5s", ""), g.process("killed", "1m", "")
	coordinator.says()
	killed.signal(syscall.SIGKILL)
	killed.end()
	if r := one.end(); r.Code != 0 {
		t.Error(r)
	}
	r := coordinator.end()
	whole, err := summary.Read(filepath.Join(g.dir, "whole"))
	if err != nil {
		t.Fatal(err, r)
	}
	if r.Code != 99 || !strings.Contains(r.Stderr, "(killed)") || whole.Verdict.Valid || !whole.Verdict.Has("process-missing", "absent") {
		t.Errorf("%+v\n%v", whole.Verdict, r)
	}
}

// A process that never comes is named: the others go on without it, and the whole is not valid.
func TestCoordinator_ProcessNeverComes_Named(t *testing.T) {
	t.Parallel()
	g := newGathering(t)
	coordinator := g.coordinator("", "--processes", "2", "--timeout", "3s")
	if r := g.process("one", "1s", "").end(); r.Code != 0 {
		t.Error(r)
	}
	r := coordinator.end()
	whole, err := summary.Read(filepath.Join(g.dir, "whole"))
	if err != nil {
		t.Fatal(err, r)
	}
	if r.Code != 99 || !strings.Contains(r.Stderr, "missing: process 2") || whole.Verdict.Valid || !whole.Verdict.Has("process-missing", "absent") {
		t.Errorf("%+v\n%v", whole.Verdict, r)
	}
}

// A process that its coordinator refuses, or that finds none, sends no message and exits with 74. The interrupted coordinator names what is missing.
func TestCoordinator_ProcessRefused_ExitCode74(t *testing.T) {
	t.Parallel()
	g := newGathering(t)
	coordinator := g.coordinator("joined, 1 of 2", "--processes", "2", "--run", "nightly", "--timeout", "1m")
	going := g.process("one", "1m", "")
	coordinator.says()
	for name, env := range map[string][]string{
		"another run":       {"BROKER_RUN=another"},
		"another token":     {"BROKER_COORDINATOR_TOKEN=mine"},
		"no coordinator":    {"BROKER_COORDINATOR=http://127.0.0.1:1", "BROKER_COORDINATOR_TIMEOUT=1s"},
		"not a coordinator": {"BROKER_COORDINATOR=http://" + g.address + "/x"},
	} {
		r := g.process("two", "1s", "", append(env, "BROKER_REPORT_DIR="+t.TempDir())...).end()
		if r.Code != 74 || strings.Contains(r.Stdout+r.Stderr, "hush") {
			t.Errorf("%s: %v", name, r)
		}
	}
	coordinator.signal(os.Interrupt)
	if r := coordinator.end(); r.Code != 105 || !strings.Contains(r.Stderr, "missing: process 1 (one), process 2") {
		t.Error(r)
	}
	going.signal(syscall.SIGKILL)
	going.end()
}
