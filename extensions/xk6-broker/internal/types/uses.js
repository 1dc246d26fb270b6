// What is right, and in no script of the repository.
import { SharedArray } from 'k6/data';
import broker, { arrival, connect, drivers, handleSummary as writeResults, mark, phase, result } from 'k6/x/broker';
import nats from 'k6/x/broker/nats';

const { name, schemes } = nats;
drivers().map((driver) => [driver.name === name, driver.schemes.concat(schemes), driver.features.settle.includes('ack')]);

const kafka = connect('kafka://127.0.0.1:9092', { sasl: 'scram-sha-256', requestTimeout: 500, acks: 'leader', profile: 'durable' });
kafka.require({ groups: true, settle: ['ack'], start: 'earliest', order: 'partition' });
kafka.createTopic('orders', { partitions: 6, replicas: 3, profile: 'durable' });
const orders = kafka.producer('orders', { maxInFlight: 100, connections: 'per-vu', stamp: 'header', linger: '5ms', idempotence: false });
const workers = kafka.consumer('orders', { group: 'workers', prefetch: 100, start: 'earliest', connections: 2, confirmAcks: true });

const jetstream = connect('embedded:');
jetstream.createTopic('orders', { storage: 'memory', maxBytes: '64MiB', maxAge: '1h' });
jetstream.consumer('orders', { ackWait: 5000, nakDelay: '1s' });
connect('rabbitmq:').createTopic('orders', { queueType: 'quorum', bindings: ['a', 'b'], messageTTL: '1s' });

const lines = new SharedArray('lines', () => open('orders.ndjson').split('\n'));

/** @type {import('k6/x/broker').Options} */
export const options = {
  tags: { team: 'a' },
  scenarios: {
    steady: {
      executor: 'open-arrival-rate', rate: 0.5, timeUnit: '1m', duration: 5000, preAllocatedVUs: 5, maxVUs: 50, maxQueue: 500,
      arrivals: 'poisson', seed: 42, startTime: '1s', gracefulStop: '5s', exec: 'run', env: { A: 'b' }, tags: { a: 'b' },
    },
    ramp: { executor: 'open-arrival-rate', startRate: 5, stages: [{ target: 50, duration: '5s' }], preAllocatedVUs: 5 },
    produce: { executor: 'producers' },
    produceMore: { executor: 'producers', maxDuration: '1h', startTime: '1s', gracefulStop: '5s', exec: 'run', env: { A: 'b' } },
    consume: { executor: 'consumers' },
    consumeMore: { executor: 'consumers', vus: 5, duration: '1h', startTime: '1s', gracefulStop: '5s', exec: 'run', env: { A: 'b' } },
    k6: { executor: 'ramping-arrival-rate', stages: [{ target: 5, duration: '5s' }], preAllocatedVUs: 5 },
  },
  thresholds: { broker_lost: ['count==0', { threshold: 'count<5', abortOnFail: true }] },
};

export async function run() {
  const { due, lag, index } = arrival() ?? { due: 0, lag: 0, index: 0 };
  const receipt = await orders.send({ key: 5, headers: { due, lag }, body: { index } });
  const receipts = await orders.send(['a', new Uint8Array(5), { body: new ArrayBuffer(5) }]);
  const messages = await workers.receive({ max: 5, wait: 500 });
  await workers.nack(messages, { requeue: false });
  await workers.ack(messages[0]);
  await orders.produce({ stages: [{ target: receipt.latency, duration: '5s' }], arrivals: 'poisson', seed: receipts.length });
  const headers = { kind: 'order', n: 5 };
  await orders.produce({ count: lines.length, batch: 10, payload: { bodies: lines, order: 'random', headers, keys: { count: 5, distribution: 'zipf' } } });
  await orders.produce({ count: 5, payload: { size: [{ size: 50, weight: 9 }, { size: 5000 }], properties: { partition: 1 } } });
  await orders.produce({ count: 5, payload: { size: { distribution: 'uniform', max: 500 }, headers: { a: 'b' } } });
  const { confirmed } = await orders.produce({ count: 1000 });
  await workers.consume({ count: confirmed }).then((done) => done.received);
  mark('over');
  phase('peak');
}

export function handleSummary() {
  const { verdict, topics } = result();
  const latency = topics[0].percentiles.e2e_latency.find((p) => p.q === 0.99 && p.believed);
  writeResults();
  return { 'more.txt': `${verdict.upTo ?? verdict.reasons.map((r) => `${r.code}: ${r.text}`).join()} ${latency?.value} ${topics[0].groups[0].lost}` };
}

