package processes

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// background is a k6 that runs beside the test.
type background struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer
	want   string // of what is written to stderr
	stderr *harness.Watched
	ended  chan error
}

// startK6 starts k6; what is waited for is what it writes to stderr.
func startK6(t *testing.T, want string, env []string, args ...string) *background {
	t.Helper()
	b := &background{t: t, cmd: exec.Command(harness.Binary, args...), stderr: harness.Watch(want), want: want, ended: make(chan error, 1)}
	b.cmd.Env = append(append(os.Environ(), "K6_NO_USAGE_REPORT=true"), env...)
	b.cmd.Stdout, b.cmd.Stderr = &b.stdout, b.stderr
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { b.ended <- b.cmd.Wait() }()
	t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	return b
}

// says waits until it has written what is waited for.
func (b *background) says() {
	b.t.Helper()
	select {
	case <-b.stderr.Seen:
	case <-time.After(time.Minute):
		b.t.Fatalf("k6 %v never says %q:\n%s", b.cmd.Args[1:], b.want, b.stderr)
	}
}

// end waits for its end.
func (b *background) end() harness.Result {
	b.t.Helper()
	select {
	case err := <-b.ended:
		r := harness.Result{Stdout: b.stdout.String(), Stderr: b.stderr.String()}
		harness.NoRace(b.t, err, r.Stderr)
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			r.Code = exit.ExitCode()
		} else if err != nil {
			b.t.Fatal(err)
		}
		return r
	case <-time.After(2 * time.Minute):
		b.t.Fatalf("k6 %v does not end:\n%s\n%s", b.cmd.Args[1:], &b.stdout, b.stderr)
		return harness.Result{}
	}
}

func (b *background) signal(s os.Signal) {
	b.t.Helper()
	if err := b.cmd.Process.Signal(s); err != nil {
		b.t.Fatal(err)
	}
}

// gathering is a test of three processes whose results are collected.
type gathering struct {
	t       *testing.T
	dir     string
	address string
	env     []string
}

func newGathering(t *testing.T) *gathering {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("collect-%d-%d", os.Getpid(), time.Now().UnixNano())
	return &gathering{t, t.TempDir(), address, []string{
		"BROKER_URL=" + harness.URL(t, "BROKER_URL_NATS_JETSTREAM"), "TOPIC=" + id, "BROKER_RUN=" + id, "BROKER_PROCESSES=3", "BROKER_COLLECT=http://" + address,
		"BROKER_COLLECT_TOKEN=hush",
	}}
}

// collect starts the collector.
func (g *gathering) collect(want string, options ...string) *background {
	g.t.Helper()
	return startK6(g.t, want, []string{"BROKER_COLLECT_TOKEN=hush"},
		append([]string{"x", "broker", "collect", "--listen", g.address, "-o", filepath.Join(g.dir, "whole"), "--allow-invalid"}, options...)...)
}

// process starts one of the processes.
func (g *gathering) process(name, duration, want string, env ...string) *background {
	g.t.Helper()
	return startK6(g.t, want, append(append(harness.Settings(filepath.Join(g.dir, "local"), name, g.env...), "DURATION="+duration), env...), "run", "--quiet", "--no-thresholds", harness.Quick)
}

// The collector is killed when the first of three processes has sent its results, and another takes over while the others try to send theirs. What comes out
// is what merge makes of the folders that the processes have written, to the byte.
func TestACollectorIsKilledAmidAndNothingIsLost(t *testing.T) {
	t.Parallel()
	g := newGathering(t)
	first := g.collect("one: received, 1 of 3")
	one := g.process("one", "2s", "", "TOPIC="+filepath.Base(g.dir)) // where the others send nothing, for which it would stay
	others := []*background{g.process("two", "12s", "cannot be collected yet"), g.process("three", "12s", "cannot be collected yet")}
	first.says()
	first.signal(syscall.SIGKILL)
	first.end() // whether the first process has heard that its results were received or not
	for _, other := range others {
		other.says()
	}
	second := g.collect("", "--fail-if", "lost > 0")
	for _, each := range append(others, one) {
		if r := each.end(); r.Code != 0 || !strings.Contains(r.Stdout, "collected by http://"+g.address) || strings.Contains(r.Stdout+r.Stderr, "hush") {
			t.Error(r)
		}
	}
	r := second.end()
	if r.Code != 0 || !strings.Contains(r.Stderr, "one: received before") || !strings.Contains(r.Stderr, "3 of 3") || !strings.Contains(r.Stdout, "passed  fail if lost > 0") {
		t.Fatal(r)
	}
	again := filepath.Join(g.dir, "again", "whole")
	merge := []string{"x", "broker", "merge", "--allow-invalid", "-o", again}
	for _, name := range []string{"one", "two", "three"} {
		merge = append(merge, filepath.Join(g.dir, "local", name))
	}
	if r := harness.K6(t, nil, merge...); r.Code != 0 {
		t.Fatal(r)
	}
	for _, name := range harness.Names(t, again) {
		want, err := os.ReadFile(filepath.Join(again, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(g.dir, "whole", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is otherwise than merge writes it: %v", name, err)
		}
	}
	whole, err := summary.Read(filepath.Join(g.dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range whole.Topics {
		sent := uint64(topic.Counts["confirmed"])
		if group := topic.Groups[0]; group.Received != sent || group.Lost != 0 || uint64(topic.Trends["e2e_latency"].Count) != sent || sent != map[bool]uint64{true: 1000, false: 12_000}[topic.Topic == filepath.Base(g.dir)] {
			t.Errorf("%s: %v, %+v, %d latencies", topic.Topic, topic.Counts, group.Account, topic.Trends["e2e_latency"].Count)
		}
	}
}

// A collector is killed when the whole is there, as often as anybody likes: the next one judges it again. When one has ended by itself, it is refused as any result.
func TestACollectorIsKilledOverTheWhole(t *testing.T) {
	t.Parallel()
	g := newGathering(t)
	whole, processes := filepath.Join(g.dir, "whole"), filepath.Join(g.dir, "whole-processes")
	first := g.collect("2 of 3")
	all := []*background{g.process("one", "2s", ""), g.process("two", "2s", ""), g.process("three", "2s", "")}
	first.says()
	first.signal(syscall.SIGKILL)
	first.end()
	second := g.collect("staying for up to") // for those that the first had the results of
	second.says()
	written, err := os.ReadFile(filepath.Join(whole, summary.File))
	if err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(processes, ".merging", ".whole-1")
	if err := os.Mkdir(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, summary.File), written[:len(written)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	second.signal(syscall.SIGKILL)
	second.end()
	third := g.collect("staying for up to", "--fail-if", "received > 1")
	third.says()
	fourth := g.collect("another collector is at work", "--fail-if", "received < 1")
	fourth.says()
	third.signal(syscall.SIGTERM)
	if r := third.end(); r.Code != 99 || !strings.Contains(r.Stderr, "it is made again") || !strings.Contains(r.Stdout, "FAILED  fail if received > 1") {
		t.Error(r)
	}
	if r := fourth.end(); r.Code != 0 || !strings.Contains(r.Stderr, "it is made again") || !strings.Contains(r.Stdout, "passed  fail if received < 1") {
		t.Error(r)
	}
	for _, each := range all {
		if r := each.end(); r.Code != 0 {
			t.Error(r)
		}
	}
	if again, err := os.ReadFile(filepath.Join(whole, summary.File)); err != nil || !bytes.Equal(again, written) {
		t.Errorf("the whole is another one: %v", err)
	}
	if got := harness.Names(t, processes); !slices.Equal(got, []string{"one", "three", "two"}) {
		t.Errorf("there stay %q", got)
	}
	if got := harness.Names(t, g.dir); !slices.Equal(got, []string{"local", "whole", "whole-processes"}) {
		t.Errorf("there stay %q", got)
	}
	if r := g.collect("").end(); r.Code != 255 || !strings.Contains(r.Stderr, "exists already") {
		t.Error(r)
	}
}

// Of three processes one is killed and one never starts; the result names the first and says that there is the other.
func TestACollectorNamesThoseThatNeverReport(t *testing.T) {
	t.Parallel()
	g := newGathering(t)
	collector := g.collect("killed: it goes on", "--timeout", "6s")
	one, killed := g.process("one", "3s", ""), g.process("killed", "1m", "")
	collector.says()
	killed.signal(syscall.SIGKILL)
	killed.end()
	if r := one.end(); r.Code != 0 {
		t.Error(r)
	}
	r := collector.end()
	r.Stdout = strings.Join(strings.Fields(r.Stdout), " ") // as it was before it was broken into lines
	if r.Code != 0 || !strings.Contains(r.Stderr, "missing: killed, 1 of which nothing was heard") ||
		!strings.Contains(r.Stdout, "2 of the 3 processes of the test are missing (killed, 1 of which nothing was heard)") {
		t.Error(r)
	}
	if r := g.collect("", "--overwrite", "--timeout", "5s", "--allow-invalid=false").end(); r.Code != 99 || !strings.Contains(r.Stdout, "verdict: NOT VALID") {
		t.Errorf("again: %v", r)
	}
}

// What a collector refuses a process says, keeps its folder, and exits with 74; and so it does when there is no collector.
func TestResultsThatAreNotCollectedAreKept(t *testing.T) {
	t.Parallel()
	g := newGathering(t)
	collector := g.collect("one: received, 1 of 3")
	if r := g.process("one", "1s", "").end(); r.Code != 0 {
		t.Fatal(r)
	}
	collector.says()
	for says, env := range map[string][]string{
		"another result of the name one is here":       nil,
		"each test has a BROKER_RUN and a collector":   {"BROKER_RUN=another"},
		"the token is missing or another":              {"BROKER_COLLECT_TOKEN=mine"},
		"by what one says, and 3 by what is known":     {"BROKER_PROCESSES=4"},
		"given up: http://127.0.0.1:1: dial tcp":       {"BROKER_COLLECT=http://127.0.0.1:1", "BROKER_COLLECT_TIMEOUT=1s"},
		"knows nothing of PUT /x/v1/processes/one/res": {"BROKER_COLLECT=http://" + g.address + "/x"},
	} {
		dir := t.TempDir()
		r := g.process("one", "1s", "", append([]string{"BROKER_REPORT_DIR=" + dir}, env...)...).end()
		if r.Code != 74 || !strings.Contains(r.Stderr, says) || !strings.Contains(r.Stderr, "they are in "+filepath.Join(dir, "one")) {
			t.Errorf("want %q\n%v", says, r)
		}
		if confirmed(filepath.Join(dir, "one")) == 0 {
			t.Error("the folder is not kept")
		}
	}
	const nowhere = "/proc/nowhere" // where no folder can be
	if r := g.process("two", "1s", "", "BROKER_REPORT_DIR="+nowhere, "TMPDIR="+nowhere).end(); r.Code != 0 || !strings.Contains(r.Stderr, "the collector has all of them") {
		t.Error(r)
	}
	collector.signal(os.Interrupt)
	if r := collector.end(); r.Code != 105 || !strings.Contains(r.Stderr, "missing: 1 of which nothing was heard") || !strings.Contains(r.Stderr, "k6 x broker merge ") ||
		!strings.Contains(r.Stderr, "with --processes 3") {
		t.Error(r)
	}
	for says, c := range map[string]struct {
		env  []string
		args []string
	}{
		"BROKER_COLLECT: it is no address":                {[]string{"BROKER_COLLECT=somewhere"}, nil},
		"BROKER_COLLECT: what is collected is of several": {[]string{"BROKER_COLLECT=http://127.0.0.1:1", "BROKER_RUN=", "BROKER_PROCESSES="}, nil},
		`BROKER_COLLECT_TIMEOUT: \"long\" is no time`:     {[]string{"BROKER_COLLECT_TIMEOUT=long"}, nil},
		"--timeout 1s: give how long to wait":             {nil, []string{"--timeout", "1s"}},
		"--processes 1":                                   {nil, []string{"--processes", "1"}},
		"--listen: ":                                      {nil, []string{"--listen", "nowhere:x"}},
		"by what one says, and 4":                         {nil, []string{"--processes", "4"}},
	} {
		var r harness.Result
		if c.args == nil {
			r = harness.K6(t, append(g.env, c.env...), "run", "--quiet", harness.Quick)
		} else {
			r = g.collect("", c.args...).end()
		}
		if r.Code == 0 || r.Code == 99 || !strings.Contains(r.Stderr, says) {
			t.Errorf("want %q\n%v", says, r)
		}
	}
}
