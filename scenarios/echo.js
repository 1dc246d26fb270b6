// Request and a reply of the same size at a fixed arrival rate, each compared with the other, byte by byte.
//
//   SIZE         bytes of a request, and of its reply           256
//   RATE         requests per second                            500
//   DURATION     of the sending                                 10s
//   CONNECTIONS  that the requests share                        1
//   RESPONDERS   VUs that answer                                4, and 1 where each consumer gets every message
//   CALLERS      VUs that ask: so many may be under way         200
//   TIMEOUT      how long a reply is waited for                 5s
//
// *Request latency* is from when a request was due, which is called corrected for coordinated omission; *request time*, from when it was sent, is what it is
// without. BROKER_WARMUP=5s keeps the first seconds apart.
import broker from 'k6/x/broker';
import { check } from 'k6';
import { inGroup, number, seconds, topicNamed, url } from './lib/settings.js';

const size = number('SIZE', 256, 64);
const timeout = `${seconds('TIMEOUT', '5s')}s`;
const topic = topicNamed('xk6-echo');
const conn = broker.connect(url);
conn.require({ requests: true });
const caller = conn.producer(topic, { connections: number('CONNECTIONS', 1, 1) });
const responder = conn.consumer(topic, inGroup(conn, topic));
const responders = number('RESPONDERS', conn.features.fanout && !conn.features.groups ? 1 : 4, 1);

export const options = {
  scenarios: {
    respond: { executor: 'consumers', vus: responders, exec: 'respond' },
    request: {
      executor: 'open-arrival-rate', rate: number('RATE', 500, 1), duration: `${seconds('DURATION', '10s')}s`, preAllocatedVUs: number('CALLERS', 200, 1), exec: 'request',
    },
  },
  thresholds: { checks: ['rate==1'], 'broker_errors{op:request}': ['count==0'] },
};

export async function setup() {
  await conn.createTopic(topic);
}

export async function teardown() {
  await conn.deleteTopic(topic).catch(() => {}); // some brokers have nothing to delete
}

const letters = 'abcdefghijklmnopqrstuvwxyz'.repeat(Math.ceil(size / 26));

export async function request() {
  const id = `${__VU}.${__ITER} `;
  const body = id + letters.slice(id.length, size);
  const reply = await caller.request(body, { timeout });
  check(reply.text(), { 'the reply is the request, byte by byte': (text) => text === body });
}

export async function respond() {
  const batch = await responder.receive({ max: 50, wait: '500ms' });
  await Promise.all(batch.map((m) => responder.reply(m, { body: m.body })));
  await responder.ack(batch);
}

export { handleSummary } from 'k6/x/broker';
