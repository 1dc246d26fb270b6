package truth

import (
	"math"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// A consumer of 5 ms a message that gets 300 a second falls behind for as long as they come. How long its messages are under way by the
// script's own clock is what the result says, on every broker, wherever its client keeps what the consumer has not taken yet. Little's
// law holds: the latencies add up to what was under way, over time.
func TestASlowConsumerShowsAsTheScriptsClockSees(t *testing.T) {
	t.Parallel()
	for broker, url := range harness.URLs(t) {
		t.Run(broker, func(t *testing.T) {
			t.Parallel()
			topic := strings.ReplaceAll(t.Name(), "/", "-")
			o, r := harness.RunToOutcome(t, `
import { sleep } from 'k6';
import { Trend, Counter } from 'k6/metrics';
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer(__ENV.TOPIC);
const c = conn.consumer(__ENV.TOPIC, conn.features.groups ? { group: __ENV.TOPIC } : {}); // two drivers of one broker share its groups
const truth = new Trend('truth', true), said = new Trend('said', true), ages = new Counter('ages');
export const options = { summaryTrendStats: ['med', 'p(90)', 'max'], scenarios: {
  consume: { executor: 'consumers', exec: 'consume' },
  produce: { executor: 'open-arrival-rate', rate: 300, duration: '5s', preAllocatedVUs: 20, exec: 'produce' },
} };
export async function setup() { await conn.createTopic(__ENV.TOPIC); }
export async function produce() { await p.send({ body: String(broker.arrival().due) }); }
const seen = new Set(); // a message whose lease is over, because the machine is slow, comes again
export async function consume() {
  for (const m of await c.receive({ max: 1, wait: '500ms' })) {
    const age = Date.now() - Number(m.text());
    if (!seen.has(m.text())) {
      truth.add(age);
      ages.add(age);
      said.add(m.latency);
    }
    seen.add(m.text());
    sleep(0.005);
    await c.ack(m);
  }
}
`, "BROKER_URL="+url, "TOPIC="+topic)
			if len(o.Result.Topics) != 1 || len(o.Result.Topics[0].Groups) != 1 {
				t.Fatal(r)
			}
			top := o.Result.Topics[0]
			g := top.Groups[0]
			if g.Received != 1500 || g.Drained != 0 || g.Lost != 0 {
				t.Fatalf("%+v\n%v", g, r)
			}
			truth := o.Metrics["truth"].Values
			if truth["max"] < 1000 {
				t.Errorf("the consumer was not slow: %v", truth)
			}
			for stat, want := range truth {
				if got := o.Metrics["said"].Values[stat]; math.Abs(got-want) > 0.05*want+50 {
					t.Errorf("message.latency: %s is %.0f ms, by the script's clock %.0f", stat, got, want)
				}
			}
			for q, want := range map[float64]float64{0.5: truth["med"], 0.9: truth["p(90)"]} {
				if got := top.Trends["e2e_latency"].Milliseconds(q); math.Abs(got-want) > 0.05*want+20 {
					t.Errorf("p%v is %.0f ms, by the script's clock %.0f", 100*q, got, want)
				}
			}
			underWay, before := 0.0, 0.0 // in message seconds; what is outstanding is known at the end of each second
			for _, p := range top.History {
				underWay += (before + float64(p.Outstanding)) / 2 * p.Seconds
				before = float64(p.Outstanding)
			}
			// They are under way once they are confirmed.
			before = float64(g.Received) * top.Trends["publish_latency"].Mean() / 1e9
			if sum := o.Metrics["ages"].Values["count"]/1000 - before; math.Abs(underWay-sum) > 0.1*sum {
				t.Errorf("Little's law: %.0f message seconds under way, and latencies of %.0f s", underWay, sum)
			}
		})
	}
}

// VUs that are through leave their group at once: what they held goes to those who stay, and nothing waits for the end of the test.
// The script's own counts are the result's.
func TestConsumersLeaveWithTheirScenario(t *testing.T) {
	t.Parallel()
	for broker, url := range harness.URLs(t) {
		if a, err := driver.ParseURL(url, nil); err != nil || a.Driver.Features.Deliver != driver.AtLeastOnce {
			continue // it keeps nothing for those who are not there
		}
		t.Run(broker, func(t *testing.T) {
			t.Parallel()
			topic := strings.ReplaceAll(t.Name(), "/", "-")
			o, r := harness.RunToOutcome(t, `
import { Counter } from 'k6/metrics';
const conn = broker.connect(__ENV.BROKER_URL);
const p = conn.producer(__ENV.TOPIC);
const c = conn.consumer(__ENV.TOPIC, conn.features.groups ? { group: __ENV.TOPIC } : {}); // two drivers of one broker share its groups
const got = new Counter('got');
export const options = { scenarios: {
  early: { executor: 'constant-vus', vus: 3, duration: '8s', exec: 'consume', gracefulStop: '2s' },
  ramp: { executor: 'ramping-vus', startVUs: 3, stages: [{ duration: '8s', target: 3 }, { duration: '2s', target: 1 }, { duration: '18s', target: 1 }], exec: 'consume', gracefulRampDown: '1s' },
  produce: { executor: 'open-arrival-rate', rate: 100, duration: '10s', startTime: '5s', preAllocatedVUs: 20, exec: 'produce' },
} };
export async function setup() { await conn.createTopic(__ENV.TOPIC); await c.ready(); }
export async function produce() { await p.send('x'); }
export async function consume() {
  const batch = await c.receive({ max: 10, wait: '300ms' });
  await c.ack(batch);
  got.add(batch.length);
}
`, "BROKER_URL="+url, "TOPIC="+topic)
			if len(o.Result.Topics) != 1 || len(o.Result.Topics[0].Groups) != 1 {
				t.Fatal(r)
			}
			g := o.Result.Topics[0].Groups[0]
			if script := o.Metrics["got"].Values["count"]; float64(g.Received) != script || o.Metrics["broker_received"].Values["count"] < script {
				t.Errorf("the script got %v, the result says %+v", script, g)
			}
			if g.Expected != 1000 || g.Received != g.Expected || g.Drained != 0 || g.Lost != 0 {
				t.Fatalf("%+v\n%v", g, r)
			}
			if p99 := o.Result.Topics[0].Trends["e2e_latency"].Milliseconds(0.99); p99 > 10_000 {
				t.Errorf("messages waited for consumers that had gone: p99 %v ms", p99)
			}
		})
	}
}
