// End-to-end latency without load: a message is sent when the one before has arrived.
//
//   MESSAGES    how many                          20000
//   WARMUP      messages before, not measured     500
//   SIZE        bytes of a message                100
//   PARTITIONS  of the topic, where it has any    1
//   REPLICAS    of the topic, where it has any    1
//
// What only one broker has, such as Kafka's acks, goes into the query of BROKER_URL. A closed loop measures what one user alone waits. Each run
// has the topic anew.
import broker from 'k6/x/broker';
import { fail } from 'k6';
import { inGroup, number, topicNamed, url } from './lib/settings.js';
import { anew } from './lib/topic.js';

const topic = topicNamed('xk6-one-at-a-time');
const messages = number('MESSAGES', 20000, 1);
const warmup = number('WARMUP', 500);
const conn = broker.connect(url, { profile: 'latency' });
const producer = conn.producer(topic, { stamp: 'body' });
const consumer = conn.consumer(topic, inGroup(conn, topic));

// The stamp is in the front of the message, and in its size.
const body = 'x'.repeat(number('SIZE', 100, 41) - 40);

export const options = {
  scenarios: { pingpong: { executor: 'per-vu-iterations', maxDuration: '24h' } },
  thresholds: { broker_lost: ['count==0'] },
};

export async function setup() {
  await anew(conn, topic, { partitions: number('PARTITIONS', 1, 1), replicas: number('REPLICAS', 1, 1) });
}

export default async function () {
  await Promise.all([producer.ready(), consumer.ready()]);
  for (let i = 0; i < warmup + messages; i += 1) {
    if (i === warmup) broker.phase('measured');
    const sent = producer.send(body);
    const [message] = await consumer.receive({ max: 1, wait: '30s' });
    if (!message) fail(`message ${i} did not come within 30s`);
    await Promise.all([sent, consumer.ack(message)]);
  }
}

export { handleSummary } from 'k6/x/broker';
