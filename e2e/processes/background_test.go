package processes

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
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
