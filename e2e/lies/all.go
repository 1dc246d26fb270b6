package lies

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// All are the experiments of the table in docs/evidence/lies.md.
func All() []Lie {
	return []Lie{
		{
			Name: "a consumer that is too slow",
			How:  "300 messages/s for 5 s to a consumer of 5 ms a message",
			script: pipeline(5, "12s") + `
export async function consume() {
  const all = await c.receive({ max: 1, wait: '500ms' });
  for (const m of all) { sleep(0.005); await c.ack(m); }
}`,
			Naive: quantile("end-to-end time p50", "e2e_time", 0.5),
			Code:  "consumers-slower", Why: "buffered", Valid: true,
		},
		{
			Name: "a generator that stands still", How: "k6 frozen five times for 150 ms, 2 VUs, 500/s",
			script: `
const p = broker.connect(url).producer(topic);
export async function setup() { await broker.connect(url).createTopic(topic); }
export const options = { scenarios: {
  s: { executor: 'open-arrival-rate', rate: 500, duration: '10s', preAllocatedVUs: 2 },
} };
export default async function () { await p.send('x'); }`,
			during: freezeProcess(5, 150*time.Millisecond),
			Naive:  quantile("publish time p99", "publish_time", 0.99),
			Code:   "percentile-not-reliable", Valid: true,
		},
		{
			Name: "a broker that stands still, in a closed loop",
			How:  "silent for 1 s of 8 s; each send waits for the answer to the one before",
			script: `
const conn = broker.connect(url), p = conn.producer(topic);
export async function setup() { await conn.createTopic(topic); }
export const options = { scenarios: {
  s: { executor: 'constant-vus', vus: 1, duration: '8s' },
} };
export default async function () { await p.send('x'); sleep(0.001); }` + imports,
			during: freezeBroker(time.Second),
			Naive:  quantile("publish latency p99", "publish_latency", 0.99),
			Code:   "closed-loop", Why: "all", Valid: true,
		},
		{
			Name: "too few VUs for k6's own executor",
			How:  "constant-arrival-rate with 2 VUs, the broker silent for 1 s of 8 s",
			script: `
const conn = broker.connect(url), p = conn.producer(topic);
export async function setup() { await conn.createTopic(topic); }
export const options = { scenarios: {
  s: { executor: 'constant-arrival-rate', rate: 500, duration: '8s', preAllocatedVUs: 2, maxVUs: 2 },
} };
export default async function () { await p.send('x'); }`,
			during: freezeBroker(time.Second),
			Naive:  quantile("publish latency p99", "publish_latency", 0.99),
			Code:   "arrivals-dropped", Why: "no-vu",
		},
		{
			Name: "too few VUs at all", How: "1,000/s for 4 s to one VU of 5 ms",
			script: `
const conn = broker.connect(url), p = conn.producer(topic);
export async function setup() { await conn.createTopic(topic); }
export const options = { scenarios: {
  s: { executor: 'open-arrival-rate', rate: 1000, duration: '4s', preAllocatedVUs: 1, gracefulStop: '0s' },
} };
export default async function () { await p.send('x'); sleep(0.005); }` + imports,
			Naive: quantile("publish time p50", "publish_time", 0.5),
			Code:  "arrivals-dropped", Why: "unserved",
		},
		{
			Name: "sends that fail", How: "every third message is larger than the broker takes",
			script: `
const conn = broker.connect(url), p = conn.producer(topic);
export async function setup() { await conn.createTopic(topic); }
export const options = { scenarios: {
  s: { executor: 'open-arrival-rate', rate: 200, duration: '5s', preAllocatedVUs: 20 },
} };
export default async function () { try { await p.send(__ITER % 3 ? 'x' : 'x'.repeat(2e6)); } catch (e) { } }`,
			Naive: quantile("publish latency p90", "publish_latency", 0.9),
			Code:  "sends-failed",
		},
		{
			Name: "nobody receives", How: "the script has a consumer and never calls receive",
			script: pipeline(4, "5s") + `
export async function consume() { sleep(1); }`,
			Naive: Naive{"lost", func(*Outcome) string { return "0" }},
			Code:  "nothing-received",
		},
		{
			Name: "consumers that end first", How: "300 messages/s for 5 s, the consumers' scenario is over after 3 s",
			script: pipeline(5, "3s") + `
export async function consume() { await c.ack(await c.receive({ max: 10, wait: '200ms' })); }`,
			Naive: quantile("end-to-end latency p50", "e2e_latency", 0.5),
			Code:  "drained",
		},
		{
			Name: "a test that is cut short", How: "Ctrl-C after 4 s of 30 s",
			script: pipeline(30, "30s") + `
export async function consume() { await c.ack(await c.receive({ max: 10, wait: '200ms' })); }`,
			during: func(ctx context.Context, s *Scene) error {
				if err := pause(ctx, 4*time.Second); err != nil {
					return err
				}
				return s.Process.Signal(syscall.SIGINT)
			},
			Naive: quantile("end-to-end latency p90", "e2e_latency", 0.9),
			Code:  "ended-early", Why: "interrupted", Fails: true,
		},
		{
			Name: "yesterday's messages",
			How:  "an earlier test with the same `BROKER_RUN` left 50 messages",
			env:  []string{"BROKER_RUN=nightly"},
			before: `
const conn = broker.connect(url), p = conn.producer(topic);
export async function setup() { await conn.createTopic(topic); }
export default async function () { await p.produce({ count: 50 }); sleep(7); }` + imports,
			script: `
const conn = broker.connect(url), p = conn.producer(topic);
const c = conn.consumer(topic, { group: 'g', start: 'earliest' });
export default async function () {
  await c.ready();
  await p.produce({ count: 50 });
  await c.consume({ count: 100, idle: '5s' });
}`,
			Naive: Naive{
				"received",
				func(o *Outcome) string { return fmt.Sprint(o.Result.Topics[0].Counts["received"]) },
			},
			Code: "earlier-test",
		},
		{
			Name: "one broker by two addresses", How: "producer and consumer connect by different URLs",
			script: `
const p = broker.connect(url).producer(topic), direct = broker.connect(__ENV.DIRECT);
const c = direct.consumer(topic, { group: 'g' });
export async function setup() { await direct.createTopic(topic); }
export default async function () {
  await c.ready();
  await p.produce({ count: 500 });
  await c.consume({ count: 500, idle: '5s' });
}`,
			Naive: Naive{"lost", func(*Outcome) string { return "0" }},
			Code:  "uncertain", Why: "aliased",
		},
		{
			Name: "clocks of two machines", How: "messages whose stamps were written by a clock that is an hour ahead",
			script: `
const conn = broker.connect(url), p = conn.producer(topic);
const c = conn.consumer(topic + '-skewed', { group: 'g' });
export async function setup() {
  await conn.createTopic(topic);
  await conn.createTopic(topic + '-skewed');
}
export default async function () {
  await c.ready();
  for (let i = 0; i < 50; i++) await p.send('x');
  await c.consume({ count: 50, idle: '5s' });
}`,
			during: skewClock,
			Naive:  Naive{"negative latencies", func(*Outcome) string { return "left out" }},
			Code:   "clocks", Why: "negative",
		},
	}
}

const imports = `
import { sleep } from 'k6';`

// pipeline is a script with producers of 300 messages a second and one consumer.
func pipeline(seconds int, consumer string) string {
	return fmt.Sprintf(`%s
const conn = broker.connect(url), p = conn.producer(topic), c = conn.consumer(topic, { group: 'g' });
export async function setup() { await conn.createTopic(topic); }
export const options = { scenarios: {
  consume: { executor: 'constant-vus', vus: 1, duration: '%s', exec: 'consume', gracefulStop: '2s' },
  produce: {
    executor: 'open-arrival-rate', rate: 300, duration: '%ds', startTime: '1s', preAllocatedVUs: 20, exec: 'produce',
  },
} };
export async function produce() { await p.send('x'); }
`, imports, consumer, seconds)
}

func quantile(label, trend string, q float64) Naive {
	return Naive{label, func(o *Outcome) string { return o.Quantile(trend, q) }}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// warmUp is the time until k6 is in the middle of its load.
const warmUp = 3 * time.Second

// freezeProcess stops k6 itself.
func freezeProcess(times int, length time.Duration) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		if err := pause(ctx, warmUp); err != nil {
			return err
		}
		for range times {
			if err := s.Process.Signal(syscall.SIGSTOP); err != nil {
				return fmt.Errorf("stop: %w", err)
			}
			err := pause(ctx, length)
			if cont := s.Process.Signal(syscall.SIGCONT); cont != nil {
				return fmt.Errorf("continue: %w", cont)
			}
			if err != nil || pause(ctx, time.Second) != nil {
				return err
			}
		}
		return nil
	}
}

// freezeBroker stops the traffic to the server and back.
func freezeBroker(length time.Duration) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		if err := pause(ctx, warmUp); err != nil {
			return err
		}
		s.Proxy.Freeze()
		defer s.Proxy.Thaw()
		return pause(ctx, length)
	}
}
