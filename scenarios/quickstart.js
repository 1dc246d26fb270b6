// A first run: producers at a fixed arrival rate, consumers that acknowledge. Runs on any broker:
//
//   ./k6 run scenarios/quickstart.js
//   BROKER_URL=jetstream://127.0.0.1:4222 ./k6 run scenarios/quickstart.js
import broker from 'k6/x/broker';
import { inGroup, topicNamed, url } from './lib/settings.js';

const topic = topicNamed('xk6-quickstart');
const conn = broker.connect(url);
const orders = conn.producer(topic);
const worker = conn.consumer(topic, inGroup(conn, topic));

export const options = {
  scenarios: {
    // Consumers are ready before the first message is due, and end when the last has arrived.
    consume: { executor: 'consumers', vus: 2, exec: 'consume' },
    // Arrivals are queued and never dropped; each message knows when it was due. k6's own constant-arrival-rate works too.
    produce: { executor: 'open-arrival-rate', rate: 1000, duration: '12s', preAllocatedVUs: 50, exec: 'produce' },
  },
  thresholds: {
    broker_e2e_latency: ['p(99)<5000'],
    broker_lost: ['count==0'],
    broker_duplicated: ['count==0'],
  },
};

export async function setup() {
  await conn.createTopic(topic);
}

export async function produce() {
  await orders.send({ key: `customer-${__VU}`, body: { order: __ITER } });
}

export async function consume() {
  const batch = await worker.receive({ max: 100, wait: '500ms' });
  for (const message of batch) message.json();
  await worker.ack(batch);
}

export { handleSummary } from 'k6/x/broker';
