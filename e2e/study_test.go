package e2e

import (
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

const swept = `
import broker from 'k6/x/broker';
const conn = broker.connect('embedded:');
const p = conn.producer('swept');
const c = conn.consumer('swept', { group: 'workers' });
const rate = Number(__ENV.RATE);
const broken = __ENV[['BRE', 'AK'].join('')]; // a name that is put together is no part of what is asked for
if (!(rate > 0)) throw new Error('RATE is no rate');
export const options = { scenarios: {
  consume: { executor: 'consumers', exec: 'consume' },
  produce: { executor: 'per-vu-iterations', exec: 'produce' },
} };
export async function setup() { await conn.createTopic('swept'); if (broken === rate + '') throw new Error('broken on purpose'); }
export async function produce() { await p.produce({ rate, duration: '1s', payload: { size: 100 } }); }
export async function consume() { await c.consume({}); }
export { handleSummary } from 'k6/x/broker';
`

// A sweep goes on past a cell that fails. Ctrl-C ends it after the running cell, which is whole, and --resume runs what has no result; the table has the numbers of each cell's summary.json.
func TestASweep(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "study")
	path := harness.Script(t, swept)
	args := []string{"x", "broker", "sweep", path, "--set", "RATE=200,400", "--repeat", "2", "--out", folder, "--reset", `echo with $RATE; test "$RATE" != "$UNCLEAN"`}
	broken := exec.Command(harness.Binary, args...)
	broken.Env = append(os.Environ(), "K6_NO_USAGE_REPORT=true", "BREAK=200")
	out := harness.Watch("[2/4]")
	broken.Stdout, broken.Stderr = out, out
	if err := broken.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- broken.Wait() }()
	select {
	case <-out.Seen:
	case err := <-ended:
		t.Fatalf("it ended: %v\n%s", err, out)
	}
	if err := broken.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		harness.NoRace(t, err, out.String())
		if broken.ProcessState.ExitCode() != 105 || !strings.Contains(out.String(), "the study ends after this cell") || !strings.Contains(out.String(), "--resume continues it") || strings.Contains(out.String(), "[3/4]") {
			t.Errorf("%v\n%s", err, out)
		}
	case <-time.After(time.Minute):
		_ = broken.Process.Kill()
		t.Fatalf("it did not end\n%s", out)
	}
	if n := strings.Count(out.String(), "FAILED: k6 ended with exit code"); n != 1 || !strings.Contains(out.String(), "broken on purpose") {
		t.Errorf("%d of two cells failed, want that of rate 200:\n%s", n, out)
	}
	if cells := table(t, folder); len(cells) != 2 {
		t.Errorf("%d cells", len(cells))
	}

	if r := harness.K6(t, []string{"GOGC=50"}, append(args, "--resume")...); r.Code == 0 || !strings.Contains(r.Stderr, `environment GOGC was \"\" and is \"50\"`) {
		t.Error(r)
	}
	if r := harness.K6(t, []string{"UNCLEAN=200"}, append(args, "--resume")...); r.Code == 0 || strings.Count(r.Stdout, "--reset failed: exit status 1") != 2 || !strings.Contains(r.Stderr, "cells without a result: 2") {
		t.Error(r)
	}
	if r := harness.K6(t, nil, append(args, "--resume")...); r.Code != 0 || strings.Count(r.Stdout, ", repetition ") != 2 {
		t.Error(r)
	}
	cells := table(t, folder)
	if len(cells) != 4 {
		t.Fatalf("%d cells: %v", len(cells), cells)
	}
	for _, c := range cells {
		dir := filepath.Join(folder, "cells", fmt.Sprintf("sweep-%d-%s-RATE_%s", map[string]int{"200": 1, "400": 2}[c["RATE"]], c["repetition"], c["RATE"]))
		s, err := summary.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		topic := s.Topics[0]
		if got, want := fmt.Sprint(topic.Options["produce"][0]["rate"]), c["RATE"]; got != want {
			t.Errorf("cell %s ran at a rate of %s, and the table says %s", c["cell"], got, want)
		}
		if got, want := c["publish_latency p50"], fmt.Sprint(topic.Trends["publish_latency"].Quantile(0.5)); got != want {
			t.Errorf("cell %s: p50 is %s, and the table says %s", c["cell"], want, got)
		}
		if c["lost"] != "0" || !strings.HasPrefix(c["confirmed means"], "accepted") || strings.HasPrefix(c["verdict"], "valid") != s.Verdict.Valid {
			t.Error(c)
		}
		if log, err := os.ReadFile(dir + ".log"); err != nil || !strings.Contains(string(log), "with "+c["RATE"]) || !strings.Contains(string(log), "verdict:") {
			t.Errorf("%s %v", log, err)
		}
	}
}

// table is cells.csv, each line by the names of its columns.
func table(t *testing.T, folder string) (cells []map[string]string) {
	t.Helper()
	file, err := os.Open(filepath.Join(folder, "cells.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // only read
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		cell := map[string]string{}
		for i, name := range lines[0] {
			cell[name] = line[i]
		}
		cells = append(cells, cell)
	}
	return cells
}

// A mistake is told before anything runs, and before there is a folder.
func TestMistakesInASweep(t *testing.T) {
	t.Parallel()
	path := harness.Script(t, swept)
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "study")
	for want, args := range map[string][]string{
		"RATTE: the script never reads it":         {"--set", "RATTE=1"},
		"there is no \\\"e2e_latncy":               {"--set", "RATE=1", "--column", "e2e_latncy p99"},
		"nothing varies":                           {},
		"--repeat -1: it must be 1 or more":        {"--set", "RATE=1", "--repeat", "-1"},
		"there is no study in":                     {"--set", "RATE=1", "--resume"},
		"-e after --: set the variable with --set": {"--set", "RATE=1", "--", "-e", "RATE=2"},
		"give one script":                          {"another.js", "--set", "RATE=1"},
	} {
		r := harness.K6(t, []string{"RATE=1"}, append([]string{"x", "broker", "sweep", path, "--out", out}, args...)...)
		if r.Code == 0 || !strings.Contains(r.Stderr, want) {
			t.Errorf("%v: no %q in %v", args, want, r)
		}
	}
	if r := harness.K6(t, []string{"RATE=1"}, "x", "broker", "sweep", path, "--set", "RATE=1", "--out", taken); r.Code == 0 || !strings.Contains(r.Stderr, "exists already") {
		t.Error(r)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("there is a folder of a study that never began")
	}
}
