// Tyler Treat's "Benchmarking Message Queue Latency" (13 February 2016) again: a request and a reply of the same size at a fixed rate, its five loads, on any
// broker that receives.
//
//   BROKER_URL=nats://127.0.0.1:4222 LOAD=A ./k6 run scenarios/studies/treat-2016.js
//
//   LOAD         A: 256 B, 3,000/s; B: 1 KB, 3,000/s; C: 5 KB, 2,000/s; D: 1 KB, 20,000/s, 25 connections; E: 1 MB, 100/s    A
//   SIZE         bytes of a request, and of its reply                 the load's
//   RATE         requests per second                                  the load's
//   CONNECTIONS  that the requests share                              the load's
//   DURATION     of what is measured; 60m carries p99.9999            30s
//   SCALE        shortens that: 0.1 is a tenth of it                  1
//   WARMUP       before it, which counts nowhere                      5s
//   RESPONDERS   VUs that answer                                      4, and 1 where each consumer gets every message
//   CALLERS      VUs that ask: so many requests may be under way      200, or as many as 50 ms of the rate
//   TIMEOUT      how long a reply is waited for                       5s
//   SETTINGS     published: nothing durable, as then; or own: those of BROKER_URL    published
//
// Corrected is *request latency*, from when a request was due; uncorrected is *request time*, from when it was sent. The original waited for each reply
// before it sent the next request, and added to its histogram what that had kept it from measuring; here the schedule goes on. Each reply is compared with its request, byte by byte: the original
// did not, and its replies of 1 MB came faster than its network could have brought them.
//
// What is not as it was: then the client was subscribed to what it published itself, and a request went through the broker once. Here somebody answers, and
// it goes through it twice. Broker and load generator were two machines.
import broker from 'k6/x/broker';
import { check } from 'k6';
import { choice, inGroup, number, seconds, topicNamed, url } from '../lib/settings.js';

const loads = {
  A: { size: 256, rate: 3000, connections: 1 },
  B: { size: 1024, rate: 3000, connections: 1 },
  C: { size: 5 * 1024, rate: 2000, connections: 1 },
  D: { size: 1024, rate: 20000, connections: 25 },
  E: { size: 1000 * 1000, rate: 100, connections: 1 },
};
// By driver, in ms, as its text has them; what is only drawn in its charts was read off them.
const published = {
  rabbitmq: { A: { p999: 4.3, p9999: 10, max: 12.4 }, B: { p999: 4.4, p9999: 12, max: 14.8 }, C: { p999: 1.2, p9999: 11.3, max: 14.3 }, D: { p999: 350, max: 548 } },
  kafka: { A: { p99: 22, p999: 226, max: 252 }, B: { p99: 190, p999: 244, max: 251 }, C: { p99: 52, p999: 188, max: 203 }, D: { p999: 160, max: 257 } },
  'redis-pubsub': { A: { p999: 0.49, max: 0.99 }, B: { p999: 0.62, max: 1.46 }, C: { p999: 0.77, max: 1.40 }, D: { max: 120 } },
  nats: { A: { p999: 0.50, max: 1.18 }, B: { p999: 0.45, max: 1.06 }, C: { p999: 0.57, max: 0.99 }, D: { max: 90 }, E: { max: 214 } },
};
const versions = { rabbitmq: 'RabbitMQ 3.6.0', kafka: 'Kafka 0.8.2.2', 'redis-pubsub': 'Redis 2.8.4, pub/sub', nats: 'NATS 0.7.3' };

const name = /** @type {keyof typeof loads} */ (choice('LOAD', 'A', Object.keys(loads)));
const size = number('SIZE', loads[name].size, 64);
const rate = number('RATE', loads[name].rate, 1);
const warmup = seconds('WARMUP', '5s');
const duration = seconds('DURATION', '30s') * number('SCALE', 1, 0.001);
const timeout = `${seconds('TIMEOUT', '5s')}s`;

// RabbitMQ's queue was not durable and its messages transient; the client of Kafka waited for the leader.
const as2016 = { rabbitmq: { durable: false, persistent: false }, kafka: { acks: 'leader', idempotence: false } };
const scheme = url.split(':')[0];
const settings = choice('SETTINGS', 'published', ['published', 'own']) === 'published' ? as2016[scheme] : {};

const topic = topicNamed(`xk6-treat-2016-${name.toLowerCase()}`);
const conn = broker.connect(url, { warmup: `${warmup}s`, ...settings });
conn.require({ requests: true });
const caller = conn.producer(topic, { connections: number('CONNECTIONS', loads[name].connections, 1) });
const responder = conn.consumer(topic, inGroup(conn, topic));
const responders = number('RESPONDERS', conn.features.fanout && !conn.features.groups ? 1 : 4, 1);

export const options = {
  scenarios: {
    respond: { executor: 'consumers', vus: responders, exec: 'respond' },
    request: {
      executor: 'open-arrival-rate', rate, duration: `${warmup + duration}s`, preAllocatedVUs: number('CALLERS', Math.max(200, Math.ceil(rate / 20)), 1), exec: 'request',
    },
  },
  thresholds: { checks: ['rate==1'], 'broker_errors{op:request}': ['count==0'] },
  summaryTrendStats: ['med', 'p(99)', 'max'],
};

export async function setup() {
  await conn.createTopic(topic);
}

export async function teardown() {
  await conn.deleteTopic(topic).catch(() => {}); // some brokers have nothing to delete
}

const letters = 'abcdefghijklmnopqrstuvwxyz'.repeat(Math.ceil(size / 26));

export async function request() {
  const id = `${__VU}.${__ITER} `;
  const body = id + letters.slice(id.length, size);
  const text = await caller.request(body, { timeout }).then((reply) => reply.text(), () => undefined); // errors are counted by their kind
  check(text, { 'the reply is the request, byte by byte': (got) => got === body });
}

export async function respond() {
  const batch = await responder.receive({ max: 50, wait: '500ms' });
  await Promise.all(batch.map((m) => responder.reply(m, { body: m.body })));
  await responder.ack(batch);
}

const write = broker.handleSummary;

// Published beside measured. Absolute figures do not carry over from one machine to another; how two brokers compare on one may.
export function handleSummary() {
  write();
  const of = broker.result().topics.find((t) => t.topic === topic);
  const percentiles = (of && (of.phases && of.phases.measured || of).percentiles) || {};
  const of2016 = (published[conn.driver] && published[conn.driver][name]) || {};
  const ms = (list, q) => {
    const p = (list || []).find((one) => one.q === q);
    return p && (p.supported || q === 1) ? `${Number((p.value / 1e6).toPrecision(3))} ms${p.believed ? '' : '?'}` : '-';
  };
  const lines = [`load ${name}: ${size} B, ${rate}/s for ${duration} s${versions[conn.driver] ? `; published: ${versions[conn.driver]}, two machines` : ''}`];
  const columns = (cells) => cells.map((cell) => cell.padStart(14)).join('');
  lines.push(columns(['', 'corrected', 'uncorrected', 'published']));
  for (const [title, q, key] of [['p50', 0.5], ['p90', 0.9], ['p99', 0.99, 'p99'], ['p99.9', 0.999, 'p999'], ['p99.99', 0.9999, 'p9999'], ['p99.999', 0.99999],
    ['p99.9999', 0.999999], ['max', 1, 'max']]) {
    const then = key && of2016[key];
    lines.push(columns([String(title), ms(percentiles.request_latency, q), ms(percentiles.request_time, q), then ? `${then} ms` : '-']));
  }
  lines.push('a percentile is there where at least 10 samples lie beyond it; ? is not to be relied on: see the verdict');
  return { stdout: `\n${lines.map((line) => `  ${line}`).join('\n')}\n` };
}
