// The end-to-end latency of Kafka by Jay Kreps, with what it did not state varied: make study STUDY=kreps-2014-latency
const cluster = __ENV.BROKER_URL_KAFKA_CLUSTER;
const messages = Math.max(2000, Math.round(20000 * SCALE));

const cells = [1, 6, 24].flatMap((partitions) => [1, 3].flatMap((replicas) => ['leader', 'all'].map((acks) => ({
  name: `partitions ${partitions}, replicas ${replicas}, acks=${acks}`,
  settings: { BROKER_URL: cluster && `${cluster}?acks=${acks}&idempotence=${acks === 'all'}`, PARTITIONS: partitions, REPLICAS: replicas },
  // The topic had 6 partitions and 3 replicas, so it is one of these two.
  published: partitions === 6 && replicas === 3 ? { p50: 2, p99: 3, 'p99.9': 14 } : undefined,
}))));

/** @type {import('k6/x/broker').Study} */
export const study = {
  title: 'Kreps 2014, end-to-end latency: partitions, replicas and acknowledgements',
  source: {
    citation: 'Jay Kreps, Benchmarking Apache Kafka: 2 Million Writes Per Second (On Three Cheap Machines), LinkedIn Engineering, 27 April 2014',
    url: 'https://engineering.linkedin.com/kafka/benchmarking-apache-kafka-2-million-writes-second-three-cheap-machines',
  },
  original: 'Kafka 0.8.1, one producer and one consumer, 5,000 messages. A critique (http://www.jasongj.com/2015/01/02/Kafka深度解析) notes that neither partitions, nor replicas, nor whether these are synchronous is stated, on which the latency depends: only what is committed is consumed. By the published commands the topic had 6 partitions and 3 replicas',
  question: 'How does the end-to-end latency depend on partitions, replicas and acknowledgements?',
  brokers: ['kafka-cluster'],
  claims: ['2 ms median, 3 ms p99, 14 ms p99.9.'],
  changed: [
    'Brokers and load generator are one machine, and there is no network between them.',
    `${messages} messages a run instead of 5,000, of which 5 are beyond p99.9.`,
    'Kafka is a current one (KRaft), and its client franz-go instead of the Java client.',
  ],
  repeat: 5,
  tests: [{
    name: 'latency', title: 'One message at a time', script: '../one-at-a-time.js', base: 'partitions 6, replicas 3, acks=leader',
    settings: { MESSAGES: messages },
    columns: [
      { title: 'p50', measured: 'e2e_latency p50' }, { title: 'p99', measured: 'e2e_latency p99', ratio: false }, { title: 'p99.9', measured: 'e2e_latency p99.9', ratio: false },
      { title: 'confirmed p50', measured: 'publish_latency p50' },
    ],
    cells,
  }],
};
