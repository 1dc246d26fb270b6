// Tyler Treat's five loads, messages that come back to their sender: make study STUDY=treat-2016
//
//   SYSTEMS    which of them, separated by commas    rabbitmq,kafka,redis,nats
//   LOADS      which of A, B, C, D, E                A,B,C,D,E
//   HOUR       which of them runs load A for an hour too, whose samples carry p99.9999, or none    nats
import { choice, some } from '../lib/settings.js';

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
  D: { SIZE: 1024, RATE: 20000, PRODUCERS: 25 },
  E: { SIZE: 1000 * 1000, RATE: 100 },
};
// As its text has it, which is rounded, or as read off its charts, where lines that are plateaus at their end are taken for the greatest.
const text = (ms) => `≈ ${ms} ms`;
const chart = (ms) => `≈ ${ms} ms`;
const published = {
  rabbitmq: {
    A: { 'p99.9': chart(4.3), 'p99.99': chart(10), max: chart(12.4) }, B: { 'p99.9': chart(4.4), 'p99.99': chart(12), max: chart(14.8) },
    C: { 'p99.9': chart(1.2), 'p99.99': chart(11.3), max: chart(14.3) }, D: { 'p99.9': chart(350), max: chart(548) },
  },
  kafka: {
    A: { p99: chart(22), 'p99.9': chart(226), max: chart(252) }, B: { p99: chart(190), 'p99.9': chart(244), max: chart(251) },
    C: { p99: chart(52), 'p99.9': chart(188), max: chart(203) }, D: { 'p99.9': chart(160), max: chart(257) },
  },
  redis: {
    A: { 'p99.9': chart(0.49), max: chart(0.99) }, B: { 'p99.9': chart(0.62), max: chart(1.46) }, C: { 'p99.9': chart(0.77), max: chart(1.4) },
    D: { 'p99.9999': text(120) },
  },
  nats: {
    A: { 'p99.9': chart(0.5), max: chart(1.18) }, B: { 'p99.9': chart(0.45), max: chart(1.06) }, C: { 'p99.9': chart(0.57), max: chart(0.99) },
    D: { 'p99.9999': text(90) },
  },
};

function query(url, more) {
  return url && url + (url.includes('?') ? '&' : '?') + more;
}

const warmup = 5;
const lasting = (seconds) => ({ DURATION: `${warmup + Math.max(1, seconds * SCALE)}s` });
const hour = choice('HOUR', 'nats', ['none', ...Object.keys(systems)]);
const names = some('SYSTEMS', Object.keys(systems));
const columns = ['p50', 'p99', 'p99.9', 'p99.99', 'p99.999', 'p99.9999', 'max'];

/** @type {import('k6/x/broker').Study} */
export const study = {
  title: 'Treat 2016: message queue latency',
  source: { citation: 'Tyler Treat, Benchmarking Message Queue Latency, Brave New Geek, 13 February 2016', url: 'https://bravenewgeek.com/benchmarking-message-queue-latency/' },
  original: 'Two m4.xlarge of AWS (2.4 GHz Haswell, 16 GB), one for the broker and one for the load; 30 seconds each',
  question: 'How long does a message take through a broker at a fixed rate, over the whole distribution, and what does a measurement hide that does not count from when a message was due?',
  brokers: names.map((name) => systems[name].broker),
  claims: [
    'RabbitMQ stays below a millisecond up to p99.7; Kafka leaves the others from p94 on.',
    'The tail of Redis ends at some 1.5 ms and that of NATS at some 1.2 ms; at 20,000 requests a second they reach some 120 and 90 ms at p99.9999. Kafka peaks at some 250 ms at 3,000 a second and at 20,000 alike.',
    'Requests of 1 MB have large tails, from p95 on of NATS and p97 of Redis, up to some 214 ms.',
  ],
  changed: [
    'Broker and load generator are one machine.',
    'There a request was sent when the one before had come back. Here the schedule goes on, in loops in Go.',
    'Each message is checked for damage. There it was not, and some messages of 1 MB came faster than the network could have brought them; of these nothing is shown as published.',
    '1 MB is 1,000,000 bytes here, which Kafka takes by default.',
    'There the delay that the waiting had kept from being measured was added by computation; here all of it is measured.',
    'Redis 2.8, RabbitMQ 3.6, Kafka 0.8 and NATS 0.7 are later versions here, with current clients.',
  ],
  repeat: 1,
  tests: names.map((name) => ({
    name,
    title: systems[name].title,
    note: `Published of ${systems[name].then}; ≈ is read from a chart. Latency is from when a message was due (corrected); "sent" is from when it was sent (uncorrected). A percentile is there where at least ten samples lie beyond it.`,
    script: '../producer-consumer.js',
    settings: { ...lasting(30), BROKER_WARMUP: `${warmup}s`, BROKER_URL: systems[name].url || undefined },
    columns: [
      ...columns.map((of) => ({ title: of, measured: `e2e_latency ${of}` })),
      ...columns.map((of) => ({ title: `sent ${of}`, measured: `e2e_time ${of}` })),
      { title: 'lost', measured: 'lost' },
    ],
    cells: [
      ...some('LOADS', Object.keys(loads)).map((load) => ({
        name: `${load}: ${loads[load].SIZE} B, ${loads[load].RATE}/s`, settings: loads[load], published: published[name][load],
      })),
      ...(name === hour ? [{ name: 'A, for an hour', settings: { ...loads.A, ...lasting(3600) } }] : []),
    ],
  })),
};
