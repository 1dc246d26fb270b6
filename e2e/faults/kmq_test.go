package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// A process of k6 that holds messages and is killed has done with none of them: when their time is over, the trackers of the others send them again.
func TestKMQGivesWhatAKilledProcessHeldToOthers(t *testing.T) {
	t.Parallel()
	url := harness.URL(t, "BROKER_URL_KMQ")
	topic := fmt.Sprintf("killed-%d", time.Now().UnixNano())
	const join = `
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '60s' });
const c = conn.consumer(__ENV.TOPIC, { group: 'workers', redeliverAfter: '3s', sessionTimeout: '6s' });
`
	holds := func() error {
		cmd := exec.Command(harness.Binary, "run", "--quiet", harness.Script(t, "import broker from 'k6/x/broker';"+join+`
export const options = { scenarios: { all: { executor: 'per-vu-iterations' } } };
export default async function () {
  await c.ready();
  let held = 0;
  while (held < 100) held += (await c.receive({ max: 100, wait: '10s' })).length;
  console.log('HOLDING');
  await new Promise((r) => setTimeout(r, 60000));
}
`))
		cmd.Env = append(os.Environ(), "K6_NO_USAGE_REPORT=true", "BROKER_REPORT=off", "BROKER_URL="+url, "TOPIC="+topic)
		out := harness.Watch("HOLDING")
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var failed error
		select {
		case <-out.Seen:
		case err := <-ended:
			return fmt.Errorf("it ended before it held anything: %w\n%s", err, out)
		case <-time.After(time.Minute):
			failed = fmt.Errorf("it never held anything\n%s", out)
		}
		_ = cmd.Process.Kill()
		if err := <-ended; err == nil && failed == nil {
			failed = errors.New("it ended by itself")
		}
		return failed
	}
	o, r := harness.RunToOutcome(t, harness.Pull+join+`
const p = conn.producer(__ENV.TOPIC, { partitioner: 'roundrobin' });
export async function setup() { await conn.createTopic(__ENV.TOPIC, { partitions: 4 }); }
export async function teardown() { await conn.deleteTopic(__ENV.TOPIC); }
`+steady, "SECONDS=24", "RATE=200", "BROKER_URL="+url, "TOPIC="+topic, harness.Levers(t, map[string]func() error{"fault": holds}))
	b := addsUp(t, o, r, 24*200)
	b.nothingLost(t, r)
	if b.failed != 0 || b.again < 100 {
		t.Errorf("failed %d, and %d were received again of at least 100 that were held\n%v", b.failed, b.again, r)
	}
}
