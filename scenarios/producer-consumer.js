// Producers and consumers at a fixed arrival rate, all of it set from the environment:
//
//   BROKER_URL  broker                                     embedded:
//   RATE        messages per second, over all producers    1000
//   ARRIVALS    constant or poisson                        constant
//   DURATION    of the sending                             10s
//   PRODUCERS   senders side by side                       1
//   CONSUMERS   members of the group                       1
//   SIZE        bytes of a message                         100
//   KEYS        different keys; 0 for none                 0
//   ACK         batch, message or none                     batch
//   BATCH       messages per receive, at most              100
//   WORK        time spent on each message                 0ms
//   PARTITIONS  of the topic, where it has any             1
//   REPLICAS    of the topic, where it has any             1
//   PROFILE     latency, throughput or durable             latency
//
// The loops run in Go, so that one process reaches rates that no JavaScript loop does. Several processes divide them, by execution segments: all numbers are
// those of the whole test.
import broker from 'k6/x/broker';
import { choice, inGroup, number, seconds, topicNamed, url } from './lib/settings.js';

const topic = topicNamed('xk6-producer-consumer');
const duration = seconds('DURATION', '10s');
const conn = broker.connect(url, { profile: choice('PROFILE', 'latency', ['latency', 'throughput', 'durable']) });
const ack = choice('ACK', conn.features.settle.includes('ack') ? 'batch' : 'none', ['batch', 'message', 'none']);
const producer = conn.producer(topic);
const consumer = conn.consumer(topic, inGroup(conn, topic));

const load = {
  rate: number('RATE', 1000), arrivals: choice('ARRIVALS', 'constant', ['constant', 'poisson']), duration: `${duration}s`,
  producers: number('PRODUCERS', 1, 1), payload: { size: number('SIZE', 100), keys: number('KEYS', 0) },
};
const work = {
  consumers: number('CONSUMERS', 1, 1), batch: number('BATCH', 100, 1), ack, work: `${seconds('WORK', '0ms')}s`,
};

export const options = {
  scenarios: {
    consume: { executor: 'consumers', exec: 'consume' },
    produce: { executor: 'producers', exec: 'produce', maxDuration: `${duration + 90}s` },
  },
  thresholds: { broker_lost: ['count==0'], broker_duplicated: ['count==0'], 'broker_errors{op:send}': ['count==0'] },
};

export async function setup() {
  await conn.createTopic(topic, { partitions: number('PARTITIONS', 1, 1), replicas: number('REPLICAS', 1, 1) });
}

export async function produce() {
  await producer.produce(load);
}

export async function consume() {
  await consumer.consume(work);
}

export { handleSummary } from 'k6/x/broker';
