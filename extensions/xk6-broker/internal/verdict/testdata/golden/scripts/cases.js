// Runs in which something goes wrong, for the golden accounts: CASE names it.
import broker from 'k6/x/broker';
import { sleep } from 'k6';

const cases = {
  // Sends that fail: the queue is full.
  full: { topic: { maxLength: 100, overflow: 'reject-publish' }, consume: leave },
  // A consumer that is there and receives nothing.
  nobody: { consume: idle },
  // The script has no consumer.
  unobserved: {},
  // A consumer that receives no more, and does not leave.
  stop: { consume: stop, seconds: 2 },
  // A consumer that leaves while messages are sent.
  leave: { consume: leave, seconds: 2 },
  // Consumers that come and go: the broker may keep nothing meanwhile.
  coming: { consume: comeAndGo },
  purge: { consume: slow, other: purge },
  // A tenth of the messages is given back once.
  requeue: { consume: giveBack },
  // A tenth of the messages is rejected, and received again as a dead letter.
  dead: { topic: { deadLetterQueue: `${__ENV.TOPIC}-dead` }, consume: reject, other: buryDead },
  // Others remove messages: `record` calls them.
  removed: { consume: leave, linger: 3 },
  // The broker drops the oldest messages.
  dropped: { producer: { maxLen: 50 }, topic: { maxMessages: 50, maxLength: 50 }, consume: slow },
  // Confirmations that prove nothing.
  unconfirmed: { producer: { acks: 'none' }, consume: all },
  // One that received messages leaves without having settled them; they come again to another.
  unsettled: { consume: keep, other: all },
  // A message is with one for longer than the broker lends it: another receives it, and both settle it.
  overdue: { consumer: { minIdle: '500ms' }, consume: hold, other: all },
  all: { consume: all },
  slow: { consume: slow },
  // The others, of `removed`.
  outsider: { other: purge },
};
const settings = cases[__ENV.CASE];
const seconds = Number(__ENV.SECONDS || settings.seconds || 3);
const topic = __ENV.TOPIC;
const conn = broker.connect(__ENV.BROKER_URL, { drainTimeout: '3s' });
const known = (options = {}) => (conn.driver === 'rabbitmq'
  ? pick(options, ['maxLength', 'overflow', 'deadLetterQueue'])
  : pick(options, { 'nats-jetstream': ['maxMessages'], 'redis-streams': ['maxLen'], kafka: ['acks'] }[conn.driver] || []));
const pick = (options, names) => Object.fromEntries(Object.entries(options).filter(([name]) => names.includes(name)));
const producer = conn.producer(topic, known(settings.producer));
const group = conn.features.groups ? { group: `${topic}-workers` } : {};
const consumer = settings.consume && conn.consumer(topic, { ...group, prefetch: 50, ...settings.consumer });
const dead = __ENV.CASE === 'dead' && conn.consumer(`${topic}-dead`);

const sends = __ENV.SENDS !== 'no';
const receives = settings.consume && __ENV.RECEIVES !== 'no';
const looping = { executor: 'consumers', vus: 1, ...(sends ? {} : { duration: `${seconds + 2}s` }) };
const once = { executor: 'per-vu-iterations', vus: 1, iterations: 1, exec: 'other' };
export const options = {
  scenarios: {
    ...(receives && { consume: { ...looping, exec: 'consume' } }),
    ...(settings.other && { other: settings.other === purge ? once : { ...looping, exec: 'other' } }),
    ...(sends && { produce: { executor: 'producers', exec: 'produce' } }),
  },
};

export async function setup() {
  if (__ENV.TOPIC_IS === 'prepared') return;
  await conn.deleteTopic(topic).catch(() => {});
  await conn.createTopic(topic, known(settings.topic));
}

export async function produce() {
  await producer.produce({ rate: Number(__ENV.RATE || 200), duration: `${seconds}s`, payload: { size: 60 } });
  if (settings.linger) sleep(settings.linger);
}

export const consume = settings.consume;
export const other = settings.other;

async function all() {
  await consumer.consume();
}

async function slow() {
  await consumer.consume({ work: '20ms', ack: 'message' });
}

async function idle() {
  await consumer.ready();
  sleep(0.5);
}

async function stop() {
  if (__ITER === 0) await consumer.consume({ duration: '1s' });
  else sleep(0.2);
}

async function leave() {
  if (__ITER === 0) {
    await consumer.consume({ duration: '1s' });
    await consumer.close();
  } else sleep(0.2);
}

async function comeAndGo() {
  await consumer.consume({ duration: '700ms' });
  await consumer.close();
  sleep(0.5);
}

async function purge() {
  if (sends) {
    await producer.ready();
    sleep(seconds * 0.6);
  }
  await conn.purge(topic);
}

let count = 0;
async function giveBack() {
  for (const m of await consumer.receive({ max: 50, wait: '500ms' })) {
    await (count++ % 10 === 0 ? consumer.nack(m) : consumer.ack(m));
  }
}

async function reject() {
  for (const m of await consumer.receive({ max: 50, wait: '500ms' })) {
    await (count++ % 10 === 0 ? consumer.reject(m) : consumer.ack(m));
  }
}

async function buryDead() {
  await dead.consume();
}

async function hold() {
  const batch = await consumer.receive({ max: 20, wait: '500ms' });
  if (__ITER === 0) sleep(2);
  await consumer.ack(batch);
}

async function keep() {
  if (__ITER > 0) {
    sleep(0.2);
    return;
  }
  for (let held = 0; held < 20;) held += (await consumer.receive({ max: 20, wait: '2s' })).length;
  await consumer.close();
}

export { handleSummary } from 'k6/x/broker';
