// Tyler Treat's five loads, request and reply: make study STUDY=treat-2016
//
//   SYSTEMS    which of them, separated by commas    rabbitmq,kafka,redis,nats
//   LOADS      which of A, B, C, D, E                A,B,C,D,E
//   DURATION   of each run, before --scale; 60m is a run whose samples carry p99.9999    30s
import { seconds, some } from '../lib/settings.js';

const systems = {
  // RabbitMQ's queue was not durable and its messages transient; the client of Kafka waited for the leader.
  rabbitmq: { title: 'RabbitMQ', broker: 'rabbitmq', then: 'RabbitMQ 3.6.0', url: query(__ENV.BROKER_URL_RABBITMQ, 'durable=false&persistent=false') },
  kafka: { title: 'Kafka', broker: 'kafka', then: 'Kafka 0.8.2.2', url: query(__ENV.BROKER_URL_KAFKA, 'acks=leader&idempotence=false') },
  redis: { title: 'Redis pub/sub', broker: 'redis', then: 'Redis 2.8.4, pub/sub', url: __ENV.BROKER_URL_REDIS_PUBSUB },
  nats: { title: 'NATS', broker: 'nats', then: 'NATS 0.7.3', url: __ENV.BROKER_URL_NATS },
};
const loads = {
  A: { SIZE: 256, RATE: 3000 },
  B: { SIZE: 1024, RATE: 3000 },
  C: { SIZE: 5 * 1024, RATE: 2000 },
  D: { SIZE: 1024, RATE: 20000, CONNECTIONS: 25, CALLERS: 2000 },
  E: { SIZE: 1000 * 1000, RATE: 100 },
};
// In ms, as its text has them; what is only drawn in its charts was read off them.
const published = {
  rabbitmq: { A: { 'p99.9': 4.3, 'p99.99': 10, max: 12.4 }, B: { 'p99.9': 4.4, 'p99.99': 12, max: 14.8 }, C: { 'p99.9': 1.2, 'p99.99': 11.3, max: 14.3 }, D: { 'p99.9': 350, max: 548 } },
  kafka: { A: { p99: 22, 'p99.9': 226, max: 252 }, B: { p99: 190, 'p99.9': 244, max: 251 }, C: { p99: 52, 'p99.9': 188, max: 203 }, D: { 'p99.9': 160, max: 257 } },
  redis: { A: { 'p99.9': 0.49, max: 0.99 }, B: { 'p99.9': 0.62, max: 1.46 }, C: { 'p99.9': 0.77, max: 1.40 }, D: { max: 120 } },
  nats: { A: { 'p99.9': 0.50, max: 1.18 }, B: { 'p99.9': 0.45, max: 1.06 }, C: { 'p99.9': 0.57, max: 0.99 }, D: { max: 90 }, E: { max: 214 } },
};

function query(url, more) {
  return url && url + (url.includes('?') ? '&' : '?') + more;
}

const warmup = 5;
const common = { DURATION: `${warmup + Math.max(1, seconds('DURATION', '30s') * SCALE)}s`, BROKER_WARMUP: `${warmup}s` };
const names = some('SYSTEMS', Object.keys(systems));
const columns = ['p50', 'p99', 'p99.9', 'p99.99', 'p99.999', 'p99.9999', 'max'];

/** @type {import('k6/x/broker').Study} */
export const study = {
  title: 'Treat 2016: the latency of requests and replies',
  source: { citation: 'Tyler Treat, Benchmarking Message Queue Latency, Brave New Geek, 13 February 2016', url: 'https://bravenewgeek.com/benchmarking-message-queue-latency/' },
  original: 'Two c4.xlarge of AWS, one for the broker and one for the load; 30 seconds each',
  question: 'How long does a request wait for its reply at a fixed rate, over the whole distribution, and what does a measurement hide that does not count from when a request was due?',
  brokers: names.map((name) => systems[name].broker),
  claims: [
    'Coordinated omission hides the tail: corrected and uncorrected percentiles differ most where the system stalls.',
    'RabbitMQ, Redis and NATS are alike up to p99 for requests of 256 bytes to 5 KB; the tail of Kafka is longer by far.',
    'At 20,000 requests a second all tails grow to a tenth of a second and more.',
  ],
  changed: [
    'Broker and load generator are one machine.',
    'There the client was subscribed to what it published itself, and a request went through the broker once. Here somebody answers, and it goes through it twice.',
    'Each reply is compared with its request, byte by byte. There it was not, and the replies of 1 MB came faster than the network could have brought them; of these only what is plausible is shown as published.',
    '1 MB is 1,000,000 bytes here, which Kafka takes by default.',
    'There a request was sent when the reply before it had come, and what that had kept from being measured was added by computation; here the schedule goes on, and all is measured.',
    'Redis 2.8, RabbitMQ 3.6, Kafka 0.8 and NATS 0.7 are current versions here, with current clients.',
  ],
  repeat: 1,
  tests: names.map((name) => ({
    name,
    title: systems[name].title,
    note: `Published of ${systems[name].then}. Latency is from when a request was due (corrected); "sent" is from when it was sent (uncorrected). A percentile is there where at least ten samples lie beyond it.`,
    script: '../echo.js',
    settings: { ...common, BROKER_URL: systems[name].url || undefined },
    columns: [
      ...columns.map((of) => ({ title: of, measured: `request_latency ${of}` })),
      { title: 'sent p99.9', measured: 'request_time p99.9' }, { title: 'sent max', measured: 'request_time max' }, { title: 'errors', measured: 'errors' },
    ],
    cells: some('LOADS', Object.keys(loads)).map((load) => ({
      name: `${load}: ${loads[load].SIZE} B, ${loads[load].RATE}/s`, settings: loads[load], published: published[name][load],
    })),
  })),
};
