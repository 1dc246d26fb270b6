// Fill a backlog, then see how long the consumers take to drain it.
//
//   MESSAGES   how many                     100000
//   SIZE       bytes of a message           100
//   CONSUMERS  members of the group         1
//   BATCH      messages per receive         500
import broker from 'k6/x/broker';
import { fail } from 'k6';
import { Gauge } from 'k6/metrics';
import { inGroup, number, topicNamed, url } from './lib/settings.js';

const topic = topicNamed('xk6-backlog-drain');
const messages = number('MESSAGES', 100000, 1);
const conn = broker.connect(url);
conn.require({ start: 'earliest' }); // a broker that keeps nothing has no backlog
const producer = conn.producer(topic);
const consumer = conn.consumer(topic, inGroup(conn, topic, { start: 'earliest' }));
const drainTime = new Gauge('time_to_drain', true);
const drainRate = new Gauge('drain_rate');

export const options = {
  scenarios: { drain: { executor: 'per-vu-iterations', maxDuration: '10m' } },
  thresholds: { broker_lost: ['count==0'], time_to_drain: ['value>0'] },
};

export async function setup() {
  await conn.createTopic(topic);
  await empty();
}

// empty makes sure that there is no backlog yet. What cannot be purged, as a stream of RabbitMQ, is made anew.
async function empty() {
  try {
    await conn.purge(topic);
  } catch (error) {
    if (error.kind !== 'unsupported') throw error;
    await conn.deleteTopic(topic);
    await conn.createTopic(topic);
  }
}

export default async function () {
  const filled = await producer.produce({ count: messages, payload: { size: number('SIZE', 100) } });
  if (filled.confirmed !== messages) fail(`only ${filled.confirmed} of ${messages} messages were confirmed`);
  const drained = await consumer.consume({
    count: messages, consumers: number('CONSUMERS', 1, 1), batch: number('BATCH', 500, 1), idle: '20s',
  });
  if (drained.received < messages) fail(`only ${drained.received} of ${messages} messages came back`);
  drainTime.add(drained.seconds * 1000);
  drainRate.add(drained.rate);
}

export { handleSummary } from 'k6/x/broker';
