package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// What a teardown deletes with its topic is drained or removed, and not lost. It fails at nothing and waits for nothing.
func TestATopicThatTeardownDeletes(t *testing.T) {
	t.Parallel()
	o, r := harness.RunToOutcome(t, `
const conn = broker.connect('embedded:');
const p = conn.producer('gone');
const c = conn.consumer('gone', { group: 'g' });
export const options = { iterations: 1 };
export async function setup() { await conn.createTopic('gone'); }
export default async function () {
  await c.ready();
  await p.produce({ count: 100 });
  for (let n = 0; n < 100;) { const got = await c.receive({ max: 10, wait: '10s' }); n += got.length; await c.ack(got); }
  await p.produce({ count: 50 });
}
export async function teardown() { await conn.deleteTopic('gone'); }
`)
	g := o.Result.Topics[0].Groups[0]
	if g.Lost != 0 || g.Undelivered != 0 || g.Uncertain != 0 || g.Drained != 50 || len(o.Result.Topics[0].Errors) != 0 {
		t.Errorf("%+v %+v\n%v", g, o.Result.Topics[0].Errors, r)
	}
	if o.Result.Verdict.Valid {
		t.Errorf("a third of the messages reached no consumer, and the run is valid\n%v", r)
	}
}

// The end waits for messages that the broker keeps back for longer than drainTimeout.
func TestDelay_LongerThanDrainTimeout_IsWaitedFor(t *testing.T) {
	t.Parallel()
	o, r := harness.RunToOutcome(t, `
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '3s' });
const p = conn.producer('delayed', { delay: '4s' });
const c = conn.consumer('delayed');
export const options = { iterations: 1 };
export async function setup() { await conn.createTopic('delayed'); }
export default async function () { await c.ready(); await p.produce({ count: 5 }); }
export async function teardown() { await conn.deleteTopic('delayed'); }
`, "BROKER_URL="+harness.URL(t, "BROKER_URL_SQS"))
	g := o.Result.Topics[0].Groups[0]
	if g.Expected != 5 || g.Drained != 5 || g.Lost+g.Undelivered+g.Uncertain != 0 {
		t.Errorf("%+v\n%v", g, r)
	}
}

// A test that was cut short says so, whatever cut it.
func TestATestThatEndsEarlyIsNotValid(t *testing.T) {
	for name, c := range map[string]struct{ text, code, why string }{
		"abort": {`
import exec from 'k6/execution';
export async function setup() { await conn.createTopic('early'); }
export default async function () { await p.send('x'); if (exec.scenario.iterationInTest == 20) exec.test.abort('enough'); }
`, "ended-early", "interrupted"},
		"setup throws": {`
export async function setup() { await conn.createTopic('early'); await p.send('x'); throw new Error('no'); }
export default function () {}
`, "ended-early", "no-iteration"},
		"nothing is sent": {`
export async function setup() { await conn.createTopic('early'); }
export default function () {}
`, "nothing-measured", "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := harness.K6(t, []string{"BROKER_REPORT_DIR=" + dir, "BROKER_REPORT_NAME=early"}, "run", "--quiet", "--iterations", "100", harness.Script(t, `
import broker from 'k6/x/broker';
export { handleSummary } from 'k6/x/broker';
const conn = broker.connect('embedded:');
const p = conn.producer('early');
`+c.text))
			s, err := summary.Read(filepath.Join(dir, "early"))
			if err != nil {
				t.Fatal(err, r)
			}
			if s.Verdict.Valid || !s.Verdict.Has(c.code, c.why) || !strings.Contains(r.Stdout, "verdict: NOT VALID") {
				t.Errorf("%+v\n%v", s.Verdict, r)
			}
		})
	}
}
