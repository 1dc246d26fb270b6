// As fast as it goes: so many messages from each producer, or a topic that is full to each consumer from its start, or both at a time. The phase
// `measured` leaves out what fills the topic before.
//
//   MODE        produce, consume, or both                            both
//   MESSAGES    of each producer                                     1000000
//   SIZE        bytes of a message                                   100
//   PRODUCERS   each with a connection of its own                    1
//   CONSUMERS   each gets every message, where the broker fans out   1
//   IN_FLIGHT   messages of a producer that are not confirmed yet    4096
//   PARTITIONS  of the topic, where it has any                       1
//   REPLICAS    of the topic, where it has any                       1
//   STAMP       of messages: body, or off, without which they have no account and no latency    body, where SIZE has room for it
//   TOPIC_IS    anew, or prepared: as another run has left it, which has filled it where MODE is consume            anew
//   PARTS       in how many phases its messages are produced: how the rate goes with what the topic holds already    1
//
// What only one broker has, such as Kafka's acks and batchMaxBytes, goes into the query of BROKER_URL. Of a topic that is
// prepared, several processes can produce, or consume, together.
import broker from 'k6/x/broker';
import { fail } from 'k6';
import { choice, number, topicNamed, url } from './lib/settings.js';
import { anew } from './lib/topic.js';

const topic = topicNamed('xk6-throughput');
const mode = choice('MODE', 'both', ['produce', 'consume', 'both']);
const messages = number('MESSAGES', 1000000, 1);
const size = number('SIZE', 100, 1);
const producers = number('PRODUCERS', 1, 1);
const consumers = number('CONSUMERS', 1, 1);
const parts = number('PARTS', 1, 1);
if (parts > 1 && producers > 1) throw new Error('PARTS: they follow one another, and so PRODUCERS must be 1');
const prepared = choice('TOPIC_IS', 'anew', ['anew', 'prepared']) === 'prepared';
const conn = broker.connect(url);
if (mode === 'consume') conn.require({ start: 'earliest' });

// The stamp is part of the message: one that has no room for it goes without.
const producer = conn.producer(topic, { connections: 'per-vu', maxInFlight: number('IN_FLIGHT', 4096, 1), stamp: choice('STAMP', size < 40 ? 'off' : 'body', ['body', 'off']) });

// A consumer that is declared and receives nothing would make the run not valid.
const consumer = /** @type {import('k6/x/broker').Consumer} */ (
  mode === 'produce' ? undefined : conn.consumer(topic, mode === 'consume' ? { start: 'earliest' } : {}));

const loop = { executor: 'per-vu-iterations', maxDuration: '48h' };
const producing = { ...loop, exec: 'produce', vus: producers };
const scenarios = {
  produce: { produce: producing },
  consume: { consume: { ...loop, exec: 'drain', vus: consumers } },
  both: { consume: { executor: 'consumers', exec: 'consume', vus: consumers }, produce: producing },
}[mode];

export const options = { scenarios, setupTimeout: '48h', thresholds: { 'broker_errors{op:send}': ['count==0'] } };

export async function setup() {
  if (prepared) return;
  await anew(conn, topic, { partitions: number('PARTITIONS', 1, 1), replicas: number('REPLICAS', 1, 1) });
  if (mode === 'consume') await send(messages * producers);
}

export async function produce() {
  await producer.ready();
  const share = Math.ceil(messages / parts);
  for (let part = 1; part <= parts; part += 1) {
    if (parts > 1) broker.phase(`part ${part}`);
    await send(share);
  }
}

async function send(count) {
  const sent = await producer.produce({ count, payload: { size } });
  if (sent.confirmed !== sent.due) fail(`only ${sent.confirmed} of ${sent.due} messages were confirmed`); // of several processes each fills its share
}

export async function drain() {
  await consumer.ready();
  if (!prepared) broker.phase('measured');
  const all = await consumer.consume({ count: messages * producers, batch: 1000, idle: '60s' });
  if (all.received < messages * producers) fail(`only ${all.received} of ${messages * producers} messages came`);
}

export async function consume() {
  await consumer.consume({ batch: 1000 });
}

export { handleSummary } from 'k6/x/broker';
