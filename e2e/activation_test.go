package e2e

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// activations are two scenarios, of which the second has the VUs of the first, whose iterations are cut short.
const activations = `
import { Counter } from 'k6/metrics';
import { sleep } from 'k6';
const conn = broker.connect('embedded:', { drainTimeout: '5s' });
const p = conn.producer('t'), c = conn.consumer('t', { group: 'g', start: 'earliest' }), nothing = conn.consumer('nothing', { group: 'g' });
const begun = new Counter('begun'), ended = new Counter('ended'), seen = new Counter('seen');
export const options = { scenarios: {
  first: { executor: 'constant-vus', vus: 2, duration: '2s', gracefulStop: '0s', exec: 'first' },
  second: { executor: 'per-vu-iterations', vus: 2, iterations: 5, startTime: '4s', maxDuration: '20s', exec: 'second' },
  last: { executor: 'shared-iterations', startTime: '8s', exec: 'last' },
} };
export async function setup() { await conn.createTopic('t'); await conn.createTopic('nothing'); }
export async function second() { begun.add(1); await p.send('y'); ended.add(1); }
export async function last() { seen.add((await c.receive({ max: 100, wait: '5s' })).length); }
export async function first() {
`

// A VU whose time is over while its script awaits something of the module awaits as well as any in the next scenario that has it.
func TestAVUThatIsCutShortIsUsedAgain(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"receive": "await nothing.receive({ wait: '1m' });",
		"consume": "await nothing.consume({ duration: '1m' });",
		"produce": "await p.produce({ rate: 10, duration: '1m' });",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, r := harness.RunToOutcome(t, activations+body+"}")
			if begun, ended := o.Metrics["begun"].Values["count"], o.Metrics["ended"].Values["count"]; begun != 10 || ended != 10 || o.Metrics["seen"].Values["count"] == 0 {
				t.Errorf("of %v iterations %v ended\n%v", begun, ended, r)
			}
			if top := o.Result.Topics; len(top) == 0 || o.Metrics["broker_lost"].Values["count"] != 0 {
				t.Error(r)
			}
		})
	}
}
