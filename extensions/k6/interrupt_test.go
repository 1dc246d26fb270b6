package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C ends a run within seconds, with its accounts in order and nothing left behind.
func TestInterrupt(t *testing.T) {
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
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 1<<16)
	for text := ""; !strings.Contains(text, "UNDER WAY"); {
		n, err := stderr.Read(said)
		if err != nil {
			t.Fatalf("it never began: %v\n%s", err, text)
		}
		text += string(said[:n])
	}
	go func() { // keep reading, or it would block
		for {
			if _, err := stderr.Read(said); err != nil {
				return
			}
		}
	}()
	time.Sleep(3 * time.Second) // some load is under way by then; how much does not matter
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
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
