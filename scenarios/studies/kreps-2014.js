// The ten tests of Kafka by Jay Kreps, on three nodes: make study STUDY=kreps-2014
//
//   STORED   messages of the test of stored data, at full size    100000000
//
// Their results are of Kafka 0.8.1 on six machines; the commands are in https://gist.github.com/jkreps/c7ddb4041ef62a900e6c.
import { number } from '../lib/settings.js';

const cluster = __ENV.BROKER_URL_KAFKA_CLUSTER;
const million = 1000000;
const pings = Math.max(2000, Math.round(20000 * SCALE));
const volume = Math.min(1000, Math.round(5000 * SCALE)); // MiB: rates need more than a second
const stored = number('STORED', 100 * million, 1);
const scaled = (n) => Math.max(1000, Math.round(n * SCALE));

// The options of the published commands. What the client of then had no name for is as it was: no compression, no numbering of messages, and no wait for more.
const producer = (acks, batch) => `${cluster}?acks=${acks}&batchMaxBytes=${batch}&idempotence=false&compression=none&linger=0&deliveryTimeout=10m`;
const url = (acks = 'leader', batch = 8196) => (cluster ? producer(acks, batch) : undefined);

// buffer.memory=67108864, as a number of messages; of the shortest that would be more than a process of k6 should hold.
const window = (size) => Math.min(671088, Math.floor(67108864 / size));
const usual = { MODE: 'produce', MESSAGES: scaled(50 * million), SIZE: 100, IN_FLIGHT: window(100), PARTITIONS: 6, REPLICAS: 3 };

/** @type {import('k6/x/broker').Study} */
export const study = {
  title: 'Kreps 2014: Kafka, 2 million writes per second',
  source: {
    citation: 'Jay Kreps, Benchmarking Apache Kafka: 2 Million Writes Per Second (On Three Cheap Machines), LinkedIn Engineering, 27 April 2014',
    url: 'https://engineering.linkedin.com/kafka/benchmarking-apache-kafka-2-million-writes-second-three-cheap-machines',
  },
  original: 'Kafka 0.8.1; three brokers and three machines for ZooKeeper and load, each with a Xeon of 6 cores at 2.5 GHz, six SATA disks, 32 GB and 1 Gbit/s of network',
  question: 'How many records a second does Kafka take and give, and what do replicas, acknowledgements, further producers and consumers, the size of a record and the data that is stored already change in that?',
  brokers: ['kafka-cluster'],
  claims: [
    'Three replicas that are written asynchronously cost a producer little; to wait for all of them costs about half.',
    'Three producers write 2.6 times as much as one with as many replicas, and three consumers read 2.8 times as much.',
    'A consumer beside a producer costs the producer next to nothing.',
    'With the size of a record, records a second fall and bytes a second rise; at 10 bytes the CPU is the limit.',
    'The rate does not depend on how much is stored already.',
  ],
  changed: [
    'Brokers, load generator and all disks are one machine here, so that the three brokers, and whatever reads and writes, share its CPUs. Further producers and consumers cannot bring further machines.',
    'The three producers and three consumers that were processes on three machines are VUs of one process of k6.',
    'Kafka is a later one (KRaft), and its client franz-go instead of the Java client.',
    'A record has 40 bytes of the trace stamp within its size; one of 10 bytes has none.',
    'The 64 MiB of the producer\'s buffer are a number of messages here, at most 671,088.',
    `The test of stored data has ${stored / million} million records at full size instead of 50,000 million: STORED says how many.`,
    'Published charts without numbers, those of sizes and of stored data, are no columns.',
  ],
  repeat: 3,
  tests: [
    {
      name: 'producers', title: 'Producers', script: '../throughput.js', settings: usual, base: 'one, no replication',
      columns: [{ title: 'records', measured: 'confirmed rate' }],
      cells: [
        { name: 'one, no replication', settings: { BROKER_URL: url(), REPLICAS: 1 }, published: { records: 821557 } },
        { name: 'one, three replicas asynchronously', settings: { BROKER_URL: url() }, published: { records: 786980 } },
        { name: 'one, three replicas synchronously', settings: { BROKER_URL: url('all', 64000) }, published: { records: 421823 } },
        { name: 'three, three replicas asynchronously', settings: { BROKER_URL: url(), PRODUCERS: 3 }, published: { records: 2024032 } },
        { name: 'one, and a consumer beside it', settings: { BROKER_URL: url(), MODE: 'both' }, published: { records: 795064 } },
      ],
    },
    {
      name: 'consumers', title: 'Consumers from the start of a topic', script: '../throughput.js', settings: { ...usual, MODE: 'consume', BROKER_URL: url() }, base: 'one',
      note: 'Each consumer gets all messages. The rate is that of all of them.',
      columns: [{ title: 'records', measured: 'received rate' }],
      cells: [
        { name: 'one', published: { records: 940521 } },
        { name: 'three', settings: { CONSUMERS: 3 }, published: { records: 2615968 } },
      ],
    },
    {
      name: 'sizes', title: 'Size of a record', script: '../throughput.js', settings: { ...usual, BROKER_URL: url('leader', 128000) }, base: '100 bytes',
      note: `As many messages of each size as ${volume} MiB hold, and 1000 MiB at full size, with three replicas and batches of 128,000 bytes.`,
      columns: [{ title: 'records', measured: 'confirmed rate' }],
      cells: [10, 100, 1000, 10000, 100000].map((size) => ({
        name: `${size} bytes`, settings: { SIZE: size, MESSAGES: Math.max(1000, Math.round((volume * 1024 * 1024) / size)), IN_FLIGHT: window(size) },
      })),
    },
    {
      name: 'stored', title: 'Rate against what is stored', script: '../throughput.js',
      settings: { ...usual, BROKER_URL: url(), MESSAGES: scaled(stored), PARTS: 10 },
      note: 'Each column is a tenth of a run. Three times what was sent is stored by then, with 22 bytes and more to each record.',
      columns: [1, 2, 4, 6, 8, 10].map((part) => ({ title: `tenth ${part}`, measured: 'confirmed rate', phase: `part ${part}` })),
      cells: [{ name: 'one, three replicas asynchronously' }],
    },
    {
      name: 'latency', title: 'End-to-end latency', script: '../one-at-a-time.js', settings: { MESSAGES: pings, PARTITIONS: 6, REPLICAS: 3 },
      note: `Acknowledgements are not stated in what was published: the study kreps-2014-latency varies them. 5,000 messages were sent, of which 5 are beyond p99.9; here ${pings}.`,
      columns: [{ title: 'p50', measured: 'e2e_latency p50' }, { title: 'p99', measured: 'e2e_latency p99' }, { title: 'p99.9', measured: 'e2e_latency p99.9' }],
      cells: [{ name: 'one at a time', settings: { BROKER_URL: cluster && `${cluster}?acks=leader&idempotence=false` }, published: { p50: 2, p99: 3, 'p99.9': 14 } }],
    },
  ],
};
