package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C ends a run within seconds, with its accounts in order and nothing left behind.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	path := script(t, `
import broker from 'k6/x/broker';
const conn = broker.connect('embedded:');
const p = conn.producer('interrupt');
const c = conn.consumer('interrupt', { group: 'workers' });
export const options = { scenarios: {
  consume: { executor: 'per-vu-iterations', exec: 'consume', gracefulStop: '1s' },
  produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s', gracefulStop: '1s' },
  send: { executor: 'open-arrival-rate', rate: 100, duration: '1h', preAllocatedVUs: 5, exec: 'send', startTime: '1s', gracefulStop: '1s' },
} };
export async function setup() { await conn.createTopic('interrupt'); console.log('UNDER WAY'); }
export async function produce() { await p.produce({ rate: 500, duration: '1h' }); }
export async function send() { await p.send('x'); }
export async function consume() { await c.consume({ duration: '1h' }); }
`)
	cmd := exec.Command(k6Path, "run", "--quiet", path)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "K6_NO_USAGE_REPORT=true")
	stdout, stderr := &watched{}, &watched{want: "UNDER WAY", seen: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-stderr.seen:
	case err := <-ended:
		noRace(t, err, stderr.String())
		t.Fatalf("it never began: %v\n%s", err, stderr)
	}
	time.Sleep(3 * time.Second) // some load is under way by then; how much does not matter
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		noRace(t, err, stderr.String())
		if err == nil {
			t.Error("an interrupted run must not look like one that went well")
		}
	case <-time.After(60 * time.Second):
		_ = cmd.Process.Kill()
		t.Fatalf("it did not end\n%s", stdout.String())
	}
	for _, want := range []string{"verdict:", "lost 0", "duplicated 0"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("left behind: %s", entry.Name())
	}
}
