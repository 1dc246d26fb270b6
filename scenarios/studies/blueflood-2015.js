// The sweep of Blueflood's ingestion, 13 sizes of a request × 13 numbers of requests at a time, 8.5 hours at full length: make study STUDY=blueflood-2015
//
//   STORES  which of them, separated by commas    blueflood,influxdb
import { some } from '../lib/settings.js';

const stores = {
  blueflood: { title: 'Blueflood', url: __ENV.BROKER_URL_BLUEFLOOD },
  influxdb: { title: 'InfluxDB', url: (__ENV.BROKER_URL_INFLUXDB || '').replace(/^http(.*)/, 'influxdb$1/load?createDatabase=true') },
};
const names = some('STORES', Object.keys(stores));
const sizes = [1, 25, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000];
const requests = [1, 5, 10, 15, 20, 30, 40, 50, 75, 100, 125, 150, 200];
const seconds = (s) => `${Math.round(1000 * s * SCALE)}ms`;
const columns = [{ title: 'metrics', measured: 'confirmed rate' }];
const named = (size, concurrency) => `${size} × ${concurrency}`;

// What the text claims of each pair, with 200-500+ metrics to a write of the server.
function published(size, concurrency) {
  if (size === 900 && concurrency === 15) return { metrics: 56813 };
  const inFlight = size * concurrency;
  return size >= 100 && inFlight > 1000 && inFlight < 100000 ? { metrics: '> 50,000/s' } : undefined;
}

const common = { SIZE: 16, WARMUP: '0s', DURATION: seconds(Math.max(180, 2 / SCALE)), PAUSE: seconds(10), BROKER_WARMUP: seconds(60) };

const tests = names.flatMap((name) => {
  const { title, url } = stores[name];
  const settings = { ...common, BROKER_URL: url || undefined };
  return [
    {
      name: `${name}-closed`, title: `${title}, as fast as it answers`, script: '../batch-concurrency.js', settings: { ...settings, READ_BACK: 'no' }, columns,
      base: named(900, 15), note: 'Metrics in a request × requests at a time. A request is made when one before it is answered.',
      cells: sizes.flatMap((size) => requests.map((concurrency) => ({
        name: named(size, concurrency), settings: { BATCHES: size, CONCURRENCY: concurrency }, published: name === 'blueflood' ? published(size, concurrency) : undefined,
      }))),
    },
    {
      name: `${name}-open`, title: `${title}, on a schedule`, script: '../batch-concurrency.js', settings, rate: { test: `${name}-closed`, share: 0.7 },
      note: 'At 70 % of the most that was confirmed above. The original has only the closed loop, which waits as long as the store does. Latency is of each metric, from when it was due until its request was answered.',
      columns: [...columns, { title: 'p50', measured: 'publish_latency p50' }, { title: 'p99', measured: 'publish_latency p99' }],
      cells: [100, 300, 500, 900].map((size) => ({ name: named(size, 15), settings: { BATCHES: size, CONCURRENCY: 15 } })),
    },
  ];
});

/** @type {import('k6/x/broker').Study} */
export const study = {
  title: 'Blueflood 2015: metrics to a request, and requests at a time',
  source: { citation: 'Blueflood wiki, Performance, Rackspace, 30 December 2015', url: 'https://github.com/rax-maas/blueflood/wiki/Performance' },
  original: 'Blueflood with Cassandra 2.0.4 and Java 7 on a Rackspace 30 GB Performance Cloud Server; the peak with write batches of 500 and 75 write threads in the server',
  question: 'How many metrics does a store take a second, by how many are in a request and how many requests are made at a time?',
  brokers: names,
  claims: [
    '100 metrics or more in a request, with more than 1,000 and less than 100,000 of them in flight, give more than 50,000 metrics/s.',
    'The peak is 56,813 metrics/s, with 900 metrics in a request and 15 requests at a time.',
    'What 180 s give and what the last 120 s give is within 3 % in more than 70 % of the runs.',
  ],
  changed: [
    'The load generator and the store are one machine.',
    'What varies in the server (write batches 100 200 300 500, accept threads 1 5 10 20, write threads 10 25 50 75 100) is not varied here.',
    'The store is not wiped after each 13 runs, for the order is shuffled: give --reset a command that wipes it.',
    'The burst of warm-up before each run is none: the first third of each run is thrown away, as there.',
    'Blueflood is asked for the confirmed metrics, and lost ones are counted, only in the runs on a schedule.',
    'InfluxDB takes points with a field of text of 16 bytes, and not numbers; each point of a request is of one series.',
  ],
  repeat: 1,
  tests,
};
