package e2e

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/proxy"
)

// Ctrl-C ends a run within seconds, with its accounts in order and nothing left behind.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	path := harness.Script(t, `
import broker from 'k6/x/broker';
const conn = broker.connect('embedded:');
const p = conn.producer('interrupt');
const c = conn.consumer('interrupt', { group: 'workers' });
export const options = { scenarios: {
  consume: { executor: 'per-vu-iterations', exec: 'consume', gracefulStop: '1s' },
  produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s', gracefulStop: '1s' },
  send: { executor: 'open-arrival-rate', rate: 100, duration: '1h', preAllocatedVUs: 5, exec: 'send', startTime: '1s', gracefulStop: '1s' },
} };
export async function setup() { await conn.createTopic('interrupt'); }
export async function produce() { await p.produce({ rate: 500, duration: '1h' }); }
export async function send() {
  await p.send('x');
  if (__ITER === 20) console.log('UNDER WAY');
}
export async function consume() { await c.consume({ duration: '1h' }); }
`)
	stdout, _ := interrupted(t, path, "TMPDIR="+temp)
	for _, want := range []string{"verdict:", "lost 0", "duplicated 0"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
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

// One Ctrl-C ends a run while the broker is silent, whatever drainTimeout is. The sends without an answer have failed.
func TestInterrupt_SilentBroker_Ends(t *testing.T) {
	t.Parallel()
	url, err := url.Parse(harness.URL(t, "BROKER_URL_REDIS_STREAMS"))
	if err != nil {
		t.Fatal(err)
	}
	silent, err := proxy.Listen(url.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	url.Host = silent.Addr()
	pulls := harness.Levers(t, map[string]func() error{"silence": func() error { silent.Freeze(); return nil }})
	stdout, stderr := interrupted(t, harness.Script(t, harness.Pull+`
import broker from 'k6/x/broker';
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '1h' });
const p = conn.producer('silent');
const c = conn.consumer('silent', { group: 'workers' });
export const options = { scenarios: {
  consume: { executor: 'per-vu-iterations', exec: 'consume', maxDuration: '1h' },
  send: { executor: 'shared-iterations', vus: 1, iterations: 1, exec: 'send', maxDuration: '1h', startTime: '1s' },
} };
export async function setup() { await conn.createTopic('silent'); await c.ready(); }
export async function send() {
  await p.send('heard');
  pull('silence');
  const unheard = p.send(['a', 'b', 'c']);
  console.log('UNDER WAY');
  await unheard;
}
export async function consume() { await c.consume({ duration: '1h' }); }
`), "BROKER_URL="+url.String(), pulls)
	if !strings.Contains(stdout, "NOT VALID") || strings.Contains(stdout, "lost 3") || !strings.Contains(stderr, "interrupted: waiting for up to") {
		t.Errorf("%s\n%s", stdout, stderr)
	}
}

// k6 panics itself where it is interrupted while setup waits for a promise, and never says that the test has ended. What is known is told and
// kept all the same.
func TestInterruptInSetup(t *testing.T) {
	for name, first := range map[string]string{"with a broker": "await conn.createTopic('setup'); await p.send('x');", "without": ""} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			stdout, stderr := interrupted(t, harness.Script(t, `
import broker from 'k6/x/broker';
const conn = broker.connect('embedded:');
const p = conn.producer('setup');
export async function setup() { `+first+` console.log('UNDER WAY'); await new Promise((r) => setTimeout(r, 60000)); }
export default function () {}
export { handleSummary } from 'k6/x/broker';
`), harness.Settings(dir, "mine")...)
			for _, no := range []string{"closed channel", "has not ended"} {
				if strings.Contains(stderr, no) {
					t.Errorf("%q in\n%s", no, stderr)
				}
			}
			if first == "" {
				return
			}
			s, err := summary.Read(filepath.Join(dir, "mine"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(stdout, "verdict: NOT VALID") || !s.Verdict.Has("ended-early", "interrupted") || sent(t, filepath.Join(dir, "mine")) != 1 {
				t.Errorf("%s\n%s", stdout, stderr)
			}
		})
	}
}

// interrupted runs a script, sends Ctrl-C when it has said that it is under way, and gives what k6 said. It must not end as
// if all had gone well.
func interrupted(t *testing.T, path string, env ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(harness.Binary, "run", "--quiet", path)
	cmd.Env = append(append(os.Environ(), "K6_NO_USAGE_REPORT=true"), env...)
	out, text := harness.Watch(""), harness.Watch("UNDER WAY")
	cmd.Stdout, cmd.Stderr = out, text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-text.Seen:
	case err := <-ended:
		harness.NoRace(t, err, text.String())
		t.Fatalf("it never began: %v\n%s", err, text)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := <-ended
	harness.NoRace(t, err, text.String())
	if err == nil {
		t.Error("an interrupted run must not look like one that went well")
	}
	return out.String(), text.String()
}
