package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// private is a broker of this test's own, for tests that break it.
type private struct {
	t   *testing.T
	env []string
}

// broker runs scripts/broker on the private ones.
func (p private) broker(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("../../scripts/broker", args...)
	cmd.Env = p.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("scripts/broker %v: %v\n%s%s", args, err, out, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// start starts a broker apart from those that other tests use. It needs what scripts/test has prepared.
func start(t *testing.T, name string) private {
	t.Helper()
	if os.Getenv("BROKER_REQUIRE") == "" && os.Getenv("BROKER_URL_NATS") == "" {
		t.Skip("no real brokers asked for")
	}
	state, err := os.MkdirTemp("", "xk6-broker-state-")
	if err != nil {
		t.Fatal(err)
	}
	p := private{t: t, env: append(os.Environ(), "BROKER_STATE="+filepath.Join(state, "run"), "BROKER_PORT_OFFSET=21500")}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	p.broker("up", name)
	t.Cleanup(func() { p.broker("down", name) })
	return p
}

// A server killed under load and started again with its data: errors are counted by kind, the run goes on, and nothing that was
// confirmed is lost.
func TestAServerThatIsKilledUnderLoad(t *testing.T) {
	p := start(t, "nats")
	// The first command waits for the run to be under way; k6 itself runs for 12 s.
	broken := make(chan struct{})
	go func() {
		defer close(broken)
		time.Sleep(4 * time.Second)
		p.broker("kill", "nats")
		time.Sleep(time.Second)
		p.broker("restart", "nats")
	}()
	o, r := runToOutcome(t, `
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '30s' });
const p = conn.producer('killed', { ackTimeout: '2s' });
const c = conn.consumer('killed', { group: 'workers', ackWait: '3s' });
export const options = { scenarios: {
  consume: { executor: 'per-vu-iterations', exec: 'consume' },
  produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
} };
export async function setup() { await conn.createTopic('killed', { storage: 'file' }); }
export async function produce() { await p.produce({ rate: 1000, duration: '10s' }); }
export async function consume() { await c.consume({ duration: '14s' }); }
`, "BROKER_URL="+p.broker("url", "nats", "nats-jetstream"))
	<-broken
	topic := o.Result.Topics[0]
	failed := int64(0)
	for _, e := range topic.Errors {
		if e.Op == "send" {
			failed += e.Count
			if e.Kind != "disconnected" && e.Kind != "timeout" && e.Kind != "not_found" {
				t.Errorf("%d sends failed as %s", e.Count, e.Kind)
			}
		}
	}
	if topic.Counts["sent"] != 10000 || topic.Counts["confirmed"]+failed != 10000 {
		t.Errorf("sent %d, confirmed %d, failed %d: they do not add up\n%v", topic.Counts["sent"], topic.Counts["confirmed"], failed, r)
	}
	if failed == 0 || topic.Counts["confirmed"] < 5000 {
		t.Errorf("failed %d, confirmed %d: the server was down for a second of ten\n%v", failed, topic.Counts["confirmed"], r)
	}
	if g := topic.Groups[0]; g.Lost != 0 || g.Undelivered != 0 {
		t.Errorf("confirmed and lost: %+v\n%v", g, r)
	}
}
