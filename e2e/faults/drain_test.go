package faults

import (
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// Ctrl-C ends the reading on at the end of a test, which says what it waits for and how long.
func TestInterruptEndsTheDrain(t *testing.T) {
	t.Parallel()
	p := start(t, drainPorts, "nats")
	paused := make(chan struct{})
	var once atomic.Bool
	pulls := harness.Levers(t, map[string]func() error{"fault": func() error {
		err := p.try("pause", "nats")
		if once.CompareAndSwap(false, true) {
			close(paused)
		}
		return err
	}})
	cmd := exec.Command(harness.Binary, "run", "--quiet", harness.Script(t, "import broker from 'k6/x/broker';\n"+harness.Pull+`
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '5m' });
const p = conn.producer('drain'), c = conn.consumer('drain', { group: 'g' });
export async function setup() { await conn.createTopic('drain'); }
export default async function () {
  await c.ready();
  await p.send('x');
  await c.ack(await c.receive());
  await p.produce({ count: 100 });
  pull('fault');
}
`))
	cmd.Env = append(os.Environ(), "K6_NO_USAGE_REPORT=true", "BROKER_REPORT=off", "BROKER_URL="+p.broker("url", "nats", "nats-jetstream"), pulls)
	stderr := harness.Watch("reading on for up to 5m0s (Ctrl-C ends that)")
	stdout := harness.Watch("")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for _, wait := range []<-chan struct{}{paused, stderr.Seen} {
		select {
		case <-wait:
		case err := <-ended:
			t.Fatalf("it ended: %v\n%s\n%s", err, stdout, stderr)
		case <-time.After(2 * time.Minute):
			_ = cmd.Process.Kill()
			t.Fatalf("it never came to drain\n%s\n%s", stdout, stderr)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		harness.NoRace(t, err, stderr.String())
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Fatalf("it drained on\n%s\n%s", stdout, stderr)
	}
	if !strings.Contains(stdout.String(), "uncertain 100") {
		t.Errorf("a broker that does not answer cannot say what it has:\n%s", stdout)
	}
}
