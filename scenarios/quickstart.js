// A first run: producers at a fixed arrival rate, consumers that acknowledge. Runs on any broker:
//
//   ./k6 run scenarios/quickstart.js
//   BROKER_URL=jetstream://127.0.0.1:4222 ./k6 run scenarios/quickstart.js
import broker from 'k6/x/broker';

const conn = broker.connect(__ENV.BROKER_URL || 'embedded:');
const topic = 'quickstart';
const orders = conn.producer(topic);
const worker = conn.consumer(topic, conn.features.groups ? { group: 'workers' } : {});

export const options = {
  scenarios: {
    consume: { executor: 'constant-vus', vus: 2, duration: '16s', exec: 'consume', gracefulStop: '2s' },
    produce: {
      executor: 'constant-arrival-rate', rate: 1000, timeUnit: '1s', duration: '14s', startTime: '1s',
      preAllocatedVUs: 20, exec: 'produce',
    },
  },
  thresholds: {
    broker_e2e_latency: ['p(99)<1000'],
    broker_lost: ['count==0'],
    broker_duplicated: ['count==0'],
  },
};

export async function setup() {
  await conn.createTopic(topic);
}

export async function produce() {
  await orders.send({ key: `${__VU}`, body: { id: __ITER } });
}

export async function consume() {
  const batch = await worker.receive({ max: 100, wait: '500ms' });
  for (const message of batch) message.json();
  await worker.ack(batch);
}
