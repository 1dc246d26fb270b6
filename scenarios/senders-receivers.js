// Threads that send batches and wait for the broker's word, and threads that receive, and acknowledge each batch: a queue between services.
//
//   SENDERS     threads that send; 0 where another process does               1
//   RECEIVERS   threads that receive; 0 where another process does            2
//   ACK         on, or off: what is received is never acknowledged, as by one who dies before      on
//   LEAVE       off, or on: each receiver leaves once, with a batch that it has not acknowledged, and comes again    off
//   BATCH       messages of a batch, from 1 to so many at random              10
//   MAX         messages per receive, at most                                 10
//   PREFETCH    messages that may be with a receiver, and not acknowledged    1000
//   SIZE        bytes of a message                                            100
//   DURATION    of the sending                                                30s
//   RATE        messages per second, on a schedule; 0: each sender as fast as it is answered    0
//   PARTITIONS  of the topic, where it has any                                1
//   REPLICAS    of the topic, where it has any                                1
//   TOPIC_IS    anew, or prepared: as another run has left it, for several processes together      anew
//   PROFILE     latency, throughput or durable                                durable
//
// Each thread is a VU with a connection of its own. Publish latency is of each message of a batch. What only one broker has goes into the query
// of BROKER_URL.
import broker from 'k6/x/broker';
import { choice, inGroup, number, seconds, topicNamed, url } from './lib/settings.js';
import { anew } from './lib/topic.js';

const topic = topicNamed('xk6-senders-receivers');
const most = number('BATCH', 10, 1);
const max = number('MAX', 10, 1);
const rate = number('RATE', 0);
const senders = number('SENDERS', 1);
const receivers = number('RECEIVERS', 2);
if (senders + receivers === 0) throw new Error('SENDERS, RECEIVERS: one of them must be more than 0');
const acks = choice('ACK', 'on', ['on', 'off']) === 'on';
const leaves = choice('LEAVE', 'off', ['on', 'off']) === 'on';
const prepared = choice('TOPIC_IS', 'anew', ['anew', 'prepared']) === 'prepared';
const size = number('SIZE', 100, 41);
const duration = `${seconds('DURATION', '30s')}s`;
const conn = broker.connect(url, { profile: choice('PROFILE', 'durable', ['latency', 'throughput', 'durable']) });
const producer = conn.producer(topic, { connections: 'per-vu', stamp: 'body' });
const begin = prepared && conn.features.start.includes('earliest') ? { start: 'earliest' } : {};
const consumer = conn.consumer(topic, inGroup(conn, topic, { prefetch: number('PREFETCH', 1000, 1), ...begin }));

const sending = rate > 0
  ? { executor: 'open-arrival-rate', rate: rate / ((most + 1) / 2), duration, preAllocatedVUs: senders, exec: 'send' }
  : { executor: 'constant-vus', vus: senders, duration, exec: 'send' };

// Where nobody sends here there is nothing that they could be over with.
const receiving = { executor: 'consumers', vus: receivers, exec: 'receive', ...(senders === 0 && { duration }) };

export const options = {
  // @ts-ignore: executors by what there is to do, each with all that it needs
  scenarios: { ...(receivers > 0 && { receive: receiving }), ...(senders > 0 && { send: sending }) },
  thresholds: { broker_lost: ['count==0'] },
};

export async function setup() {
  const options = { partitions: number('PARTITIONS', 1, 1), replicas: number('REPLICAS', 1, 1) };
  if (prepared) await conn.createTopic(topic, options); // it is there: so is known what a confirmation proves
  else await anew(conn, topic, options);
}

// The stamp is in the front of the message, and in its size.
const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const pool = Array.from({ length: 1000 }, () => Array.from({ length: size - 40 }, () => pick(letters)).join(''));

function pick(some) {
  return some[Math.floor(Math.random() * some.length)];
}

export async function send() {
  if (rate === 0 && __ITER === 0) await producer.produce({ count: 1, payload: { size } }); // which waits for the receivers, as the other executor does
  const batch = Array.from({ length: 1 + Math.floor(Math.random() * most) }, () => pick(pool));
  await producer.send(batch);
}

let received = 0;
let left = !leaves;

export async function receive() {
  const batch = await consumer.receive({ max, wait: '500ms' });
  received += batch.length;
  if (!left && received > 200) {
    left = true;
    await consumer.close();
  } else if (acks) await consumer.ack(batch);
}

export { handleSummary } from 'k6/x/broker';
