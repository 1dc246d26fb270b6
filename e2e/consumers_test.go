package e2e

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// Two consumers of one group; one closes with messages received and not acknowledged. They come again and nothing is lost.
func TestAConsumerThatDiesMidBatch(t *testing.T) {
	t.Parallel()
	o, r := harness.RunToOutcome(t, `
const conn = broker.connect('embedded:');
const p = conn.producer('death');
const c = conn.consumer('death', { group: 'workers', ackWait: '2s' });
export const options = { scenarios: {
  survive: { executor: 'consumers', exec: 'survive' },
  die: { executor: 'per-vu-iterations', vus: 1, iterations: 1, exec: 'die' },
  produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
} };
export async function setup() { await conn.createTopic('death'); }
export async function produce() { await p.produce({ rate: 500, duration: '4s' }); }
export async function survive() { await c.ack(await c.receive({ max: 10, wait: '300ms' })); }
export async function die() {
  let held = 0;
  while (held < 100) held += (await c.receive({ max: 50, wait: '1s' })).length;
  await c.close();
}
`)
	g := o.Result.Topics[0].Groups
	if len(g) != 1 || g[0].Expected != 2000 || g[0].Lost != 0 || g[0].Missing != 0 || g[0].Redelivered < 100 || g[0].Duplicated != 0 {
		t.Errorf("accounting: %+v\n%v", g, r)
	}
}

// A script may describe in each iteration what it uses: a VU has one consumer all the same, and no message stays with an earlier one.
func TestObjectsDescribedInEachIteration_OneConsumerPerVU(t *testing.T) {
	t.Parallel()
	o, r := harness.RunToOutcome(t, `
export const options = { vus: 3, iterations: 60 };
export async function setup() { await broker.connect('embedded:').createTopic('again'); }
export default async function () {
  const conn = broker.connect('embedded:');
  const consumer = conn.consumer('again', { group: 'g', start: 'earliest' });
  await conn.producer('again').send('x');
  let received = [];
  while (received.length === 0) received = await consumer.receive();
  await consumer.ack(received);
}
`)
	g := o.Result.Topics[0].Groups
	if len(g) != 1 || g[0].Expected != 60 || g[0].Received != 60 || g[0].Lost != 0 || g[0].Members > 3 {
		t.Errorf("accounting: %+v\n%v", g, r)
	}
}
