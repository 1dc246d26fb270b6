// SoftwareMill's mqperf: threads that send batches of 1 to 10, threads that receive: make study STUDY=mqperf-2021
//
//   SYSTEMS   which of them, separated by commas    kafka,kafka-share,kmq,rabbitmq,nats,redis,postgres,artemis,pulsar,rocketmq,mongodb,sqs
//
// Of the published rows those that make sense on one machine: one node or two that send, up to 25 threads on each.
import { some } from '../lib/settings.js';

// withOptions adds options to the query of a broker's URL.
function withOptions(url, options) {
  return url && `${url}${url.includes('?') ? '&' : '?'}${options}`;
}

// onKafka is the same Kafka by another driver.
function onKafka(scheme) {
  return (__ENV.BROKER_URL_KAFKA_CLUSTER || '').replace(/^kafka:/, `${scheme}:`);
}

const asKafka = { PARTITIONS: 64, REPLICAS: 3 };
const unpublished = ['1;1;2', '5;1;2', '25;1;2', '1;2;4', '5;2;4', '25;2;4'];

const systems = {
  kafka: {
    title: 'Kafka', broker: 'kafka-cluster', url: withOptions(__ENV.BROKER_URL_KAFKA_CLUSTER, 'commitInterval=10s'), settings: asKafka,
    then: 'Kafka 2.6.0: acks=all, three replicas, min.insync.replicas 2, 64 to 100 partitions, offsets committed every 10 s, one message in a receive; up to 10 here',
    rows: ['1;1;2: 7458/7463 47 47', '5;1;2: 31350/31361 47 47', '25;1;2: 92373/92331 81 47', '1;2;4: 15184/15175 47 47', '5;2;4: 55402/55355 47 47', '25;2;4: 127274/127345 50 48'],
  },
  'kafka-share': {
    title: 'Share groups of Kafka', broker: 'kafka-cluster', url: onKafka('kafka-share'), settings: asKafka,
    rows: unpublished,
  },
  kmq: {
    title: 'KMQ', broker: 'kafka-cluster', url: onKafka('kmq'), settings: asKafka,
    then: 'KMQ on Kafka 2.6.0, of many machines only: 676,800/s by 100 threads on each of 20 nodes that send, and 5 on each of 16 that receive, with a p95 of processing of 1.81 s',
    rows: unpublished,
  },
  rabbitmq: {
    title: 'RabbitMQ', broker: 'rabbitmq-cluster', url: __ENV.BROKER_URL_RABBITMQ_CLUSTER || __ENV.BROKER_URL_RABBITMQ, settings: { REPLICAS: __ENV.BROKER_URL_RABBITMQ_CLUSTER ? 3 : 1, PREFETCH: 100 },
    then: 'RabbitMQ 3.8.5: quorum queues, up to 100 messages with a receiver (qos)',
    rows: ['1;1;2: 2064/1991 18980 48', '5;1;2: 8146/8140 98 48', '25;1;2: 17334/17321 122 48', '1;2;4: 3994/3983 1452 48', '5;2;4: 12714/12730 99 48', '25;2;4: 19120/19126 142 48'],
  },
  nats: {
    title: 'NATS', broker: 'nats-cluster', url: (__ENV.BROKER_URL_NATS_CLUSTER || '').replace(/^nats:/, 'jetstream:') || __ENV.BROKER_URL_NATS_JETSTREAM,
    settings: { REPLICAS: __ENV.BROKER_URL_NATS_CLUSTER ? 3 : 1 },
    then: 'NATS Streaming 0.19 with Raft, whose successor JetStream is what is measured here',
    rows: ['1;1;2: 1725/1725 105 48', '5;1;2: 3976/3995 142 48', '25;1;2: 10642/10657 145 48', '1;2;4: 1870/1870 138 48', '5;2;4: 5958/5957 143 48', '25;2;4: 18023/18026 145 48'],
  },
  redis: {
    title: 'Redis Streams', broker: 'redis', url: __ENV.BROKER_URL_REDIS_STREAMS,
    then: 'Redis 6.2.4 Streams on three nodes, replicated asynchronously',
    rows: ['1;2;4: 20114/20116 45 45', '10;2;4: 32879/32878 47 47'],
  },
  postgres: {
    title: 'PostgreSQL', broker: 'postgres', url: __ENV.BROKER_URL_POSTGRES,
    then: 'PostgreSQL 12.4 with one of its standbys synchronous (remote_write)',
    rows: ['1;1;2: 4034/3741 60000 47', '5;1;2: 15073/15263 5738 48', '25;1;2: 2267/2317 17957 846', '1;2;4: 6648/7530 60000 48', '5;2;4: 23220/23070 1172 48', '25;2;4: 28867/20492 60000 49'],
  },
  artemis: {
    title: 'Artemis', broker: 'artemis', url: __ENV.BROKER_URL_AMQP1,
    then: 'Artemis 2.15.0 with synchronous backups, by its own protocol; here AMQP 1.0',
    rows: ['1;1;2: 13647/13648 48 44', '5;1;2: 36035/36021 47 46', '25;1;2: 43643/43630 48 48', '1;2;4: 21380/21379 47 45', '5;2;4: 39320/39316 48 47', '25;2;4: 51089/51090 48 48'],
  },
  pulsar: {
    title: 'Pulsar', broker: 'pulsar', url: withOptions(__ENV.BROKER_URL_PULSAR, 'batching=default'),
    then: 'Pulsar 2.6.2, one partition, ensemble 3, two acknowledgements, batches as the client makes them, within 1 ms',
    rows: ['1;1;2: 1298/1298 48 48', '5;1;2: 6711/6711 112 48', '25;1;2: 31497/31527 48 48', '1;2;4: 2652/2652 48 48', '5;2;4: 12787/12789 107 48', '25;2;4: 55621/55677 50 48'],
  },
  rocketmq: {
    title: 'RocketMQ', broker: 'rocketmq', url: withOptions(__ENV.BROKER_URL_ROCKETMQ, 'batch=10'),
    then: 'RocketMQ 4.7.1 with three pairs of a master and a synchronous slave, by its older protocol, a batch in one request; here gRPC through a proxy',
    rows: ['1;1;2: 13605/14183 37056 44', '5;1;2: 64638/64635 94 44', '25;1;2: 260093/252308 18859 45', '1;2;4: 29076/29075 135 43', '5;2;4: 129106/129097 162 44', '25;2;4: 411923/410891 17436 46'],
  },
  mongodb: {
    title: 'MongoDB', broker: 'mongodb', url: __ENV.BROKER_URL_MONGODB,
    then: 'MongoDB 4.2 with write concern 2',
    rows: ['1;1;2: 958/958 48 48', '5;1;2: 3913/3913 48 48', '25;1;2: 10090/7612 60000 48', '1;2;4: 1607/1607 48 48', '5;2;4: 5532/5440 60000 48', '25;2;4: 11286/4489 60000 53'],
  },
  sqs: {
    title: 'SQS', broker: 'elasticmq', url: withOptions(__ENV.BROKER_URL_SQS, 'inFlight=1'), // or hundreds of receives wait in a server that looks at all of them for each message
    then: 'Amazon SQS, by a client that receives ahead for all threads of a node; what is measured here is ElasticMQ, in memory, and each thread has one request at a time',
    rows: ['1;1;2: 528/529 113 49', '5;1;2: 2680/2682 277 49', '25;1;2: 13345/13370 1960 49', '1;2;4: 1068/1068 97 49', '5;2;4: 5383/5377 106 49', '25;2;4: 26576/26557 302 49'],
  },
};

const asked = some('SYSTEMS', Object.keys(systems));

const duration = { DURATION: `${Math.max(3, Math.round(300 * SCALE))}s`, BROKER_WARMUP: `${Math.max(1, Math.round(60 * SCALE))}s` };
const columns = [
  { title: 'sent', measured: 'sent rate' }, { title: 'received', measured: 'received rate', ratio: false },
  { title: 'processing p95', measured: 'e2e_latency p95', ratio: false }, { title: 'send p95', measured: 'publish_latency p95', ratio: false },
];

// The buckets of the original are 0 to 50 ms, 50 to 100 ms and so on to 60 s, with straight lines between: below 50 there was nothing to tell.
function latency(ms) {
  if (ms <= 50) return '< 50 ms';
  return ms >= 60000 ? '≥ 60 s: overload' : ms;
}

// threads;sending nodes;receiving nodes: sent/received by second, p95 of processing and of sending in ms
function cell(row) {
  const [threads, sending, receiving, sent, received, processing, send] = row.split(/[;:/ ]+/).map(Number);
  return {
    name: `${threads} threads on ${sending} + ${receiving} nodes`,
    settings: { SENDERS: threads * sending, RECEIVERS: threads * receiving },
    ...(sent && { published: { sent, received, 'processing p95': latency(processing), 'send p95': latency(send) } }),
  };
}

// topicOf is a system's own: on one Kafka a name is a consumer group's or a share group's, and not both.
function topicOf(name) {
  return `xk6-mqperf-${name}`;
}

function tests(name) {
  const { title, then, url, rows, broker, settings = {} } = systems[name];
  const cells = rows.map(cell);
  const common = { ...duration, ...settings, TOPIC: topicOf(name), BROKER_URL: url || undefined };
  const { SENDERS, RECEIVERS } = cells[cells.length - 1].settings;
  const crash = { ...settings, BROKER_URL: url || undefined, SENDERS: 100, RECEIVERS: 4, RATE: 110, DURATION: '30s', ...(settings.PARTITIONS && { PARTITIONS: 6 }) };
  return [
    { name, title, note: then ? `Published of ${then}.` : 'Nothing is published of it: it came later, with Kafka 4.', script: '../senders-receivers.js', settings: common, columns, base: cells[0].name, cells },
    {
      name: `${name}-open`, title: `${title} on a schedule`, script: '../senders-receivers.js', settings: common, columns,
      note: 'On a schedule, at 70 % of the most that was sent above. The original has only the closed loop.',
      rate: { test: name, share: 0.7 },
      cells: [{ name: 'on a schedule', settings: { SENDERS, RECEIVERS } }],
    },
    {
      name: `${name}-crash`, title: `${title}: crashes`, script: '../senders-receivers.js', settings: crash,
      note: 'At 110 messages a second. scripts/study kills the broker, or one of its nodes, amid the run and starts it again. A message that is delivered again counts as redelivered also if nobody had received it before.',
      columns: ['due', 'confirmed', 'received', 'lost', 'duplicated', 'redelivered', 'errors'].map((measured) => ({ title: measured, measured })),
      cells: [
        { name: 'each receiver leaves with a batch', settings: { TOPIC: topicOf(`${name}-leave`), LEAVE: 'on' } },
        { name: 'the broker is killed', settings: { TOPIC: topicOf(`${name}-kill-${broker}`), LEAVE: __ENV.CRASHES && 'off' } },
      ],
    },
  ];
}

/** @type {import('k6/x/broker').Study} */
export const study = {
  title: 'mqperf 2021: message queues that are replicated and acknowledge',
  source: { citation: 'Adam Warski and others, Evaluating persistent, replicated message queues, SoftwareMill, 26 July 2021', url: 'https://softwaremill.com/mqperf/' },
  original: 'All nodes r5.2xlarge (8 vCPU, 64 GiB) in one zone of AWS; messages of 100 bytes, clients in Java',
  question: 'How many messages a second go through a queue that is replicated and acknowledged, by how many threads send and receive, and how long do they take?',
  brokers: [...new Set(asked.map((name) => systems[name].broker))],
  claims: [
    'Receivers keep up with senders, but where the processing latency says overload.',
    'p95 is usually below 150 ms. In many rows it is 43 to 50 ms: that is the first bucket of a histogram, 0 to 50 ms, by a straight line, and means less than 50 ms.',
  ],
  changed: [
    'Servers and load generator are one machine, with fewer replicas where there is no cluster to be had: "confirmed means" says what it was.',
    'Threads of several nodes are VUs of one process of k6.',
    'A run lasts as long as is said, and not as many messages as there; its first fifth is thrown away.',
    'Messages come from a pool of 1,000 instead of 10,000.',
    'Latencies are of each message and exact, on one clock; there, of batches and in buckets of 50 ms, on the clocks of two machines.',
  ],
  repeat: 3,
  tests: asked.flatMap(tests),
};
