package e2e

import (
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// Two topics, one of them with a name full of signs; two groups; VUs whose tags differ, some by a tag that k6 stores as a field; requeued
// messages; errors: what InfluxDB holds adds up to what k6 counted, counter by counter and tag by tag.
func TestInfluxDBHoldsWhatK6Counted(t *testing.T) {
	t.Parallel()
	d := harness.NewDatabase(t)
	o, r := harness.RunToOutcome(t, `
import exec from 'k6/execution';
const conn = broker.connect('embedded:'), twin = broker.connect('embedded:?name=twin');
const topics = ['a', 'b,c=d"e'];
const producers = [conn, twin].flatMap((c) => topics.map((topic) => c.producer(topic)));
const readers = topics.flatMap((topic) => ['one', 'two'].map((group) => conn.consumer(topic, { group })));
export const options = {
  summaryTrendStats: ['count'],
  scenarios: {
    consume: { executor: 'per-vu-iterations', exec: 'consume', vus: 4, tags: { odd: 'x y,z="ü"' } },
    send: { executor: 'constant-arrival-rate', exec: 'send', rate: 60, duration: '4s', preAllocatedVUs: 6, startTime: '1s' },
    produce: { executor: 'per-vu-iterations', exec: 'produce', startTime: '1s' },
  },
  thresholds: {
    'broker_sent{topic:a}': [], 'broker_sent{scenario:send}': [], 'broker_received{topic:a}': [], 'broker_settled{outcome:ack}': [],
    'broker_received{consumer_group:one}': ['count>0'], 'broker_settled{consumer_group:two,outcome:ack}': ['count>0'], 'broker_drained{consumer_group:two}': [],
    'broker_e2e_latency{loop:open,consumer_group:one}': [], 'broker_e2e_latency{loop:closed,consumer_group:one}': [],
    'broker_delivery_wait{loop:closed}': [], 'broker_publish_latency{loop:closed}': [],
    'broker_settled{outcome:requeue}': ['count>0'], 'broker_errors{op:send}': ['count>0'], 'broker_redelivered{topic:a}': [],
    'data_sent{scenario:produce}': [], 'data_received{scenario:consume}': [],
  },
};
export async function setup() { for (const topic of topics) await conn.createTopic(topic); }
export async function send() {
  exec.vu.metrics.tags.url = 'http://host/' + __VU;
  for (const p of producers) await p.send({ body: 'x'.repeat(50 + __VU) });
  if (__ITER == 0) await producers[0].send({ body: 'x'.repeat(2 << 20) }).catch(() => {}); // more than the server takes
}
export async function produce() {
  await Promise.all(producers.map((p) => p.produce({ rate: 500, duration: '3s' })));
  for (const p of producers) await p.send('by no schedule');
}
export async function consume() {
  const reader = readers[(__VU - 1) % readers.length], until = Date.now() + 7000;
  let first = true;
  while (Date.now() < until) {
    const batch = await reader.receive({ max: 50, wait: '300ms' });
    if (batch.length == 0) continue;
    await (first ? reader.nack(batch, { requeue: true }) : reader.ack(batch));
    first = false;
  }
}
`, d.Out())
	if n := d.SameCounts(t, o); n < 20 {
		t.Errorf("%d counters: there should be more\n%v", n, r)
	}
	for _, name := range []string{"broker_sent", "broker_redelivered", "broker_errors", "broker_lost"} {
		if _, stored := d.Sum(t, name); !stored {
			t.Errorf("no %s was stored\n%v", name, r)
		}
	}
	if r.Code != 0 || strings.Contains(r.Stderr, "Couldn't write") {
		t.Error(r)
	}
	for _, topic := range o.Result.Topics {
		if topic.Counts["sent"] == 0 {
			t.Errorf("nothing was sent to a topic: %+v", topic.Counts)
		}
	}
}
