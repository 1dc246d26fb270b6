// Request and reply at a fixed arrival rate: what a caller waits, from the moment the request was due.
//
//   RATE        requests per second    500
//   DURATION    of the sending         10s
//   RESPONDERS  VUs that answer        4
import broker from 'k6/x/broker';
import { check } from 'k6';
import { inGroup, number, seconds, topicNamed, url } from './lib/settings.js';

const topic = topicNamed('xk6-request-reply');
const conn = broker.connect(url);
conn.require({ requests: true });
const caller = conn.producer(topic);
const responder = conn.consumer(topic, inGroup(conn, topic));

export const options = {
  scenarios: {
    respond: { executor: 'consumers', vus: number('RESPONDERS', 4, 1), exec: 'respond' },
    request: {
      executor: 'open-arrival-rate', rate: number('RATE', 500, 1), duration: `${seconds('DURATION', '10s')}s`, preAllocatedVUs: 100, exec: 'request',
    },
  },
  thresholds: { checks: ['rate==1'], broker_request_latency: ['p(95)<5000'] },
};

export async function setup() {
  await conn.createTopic(topic);
}

export async function request() {
  const reply = await caller.request({ body: { question: __ITER } }, { timeout: '5s' });
  check(reply.json(), { 'the answer is to this question': (answer) => answer.to === __ITER });
}

export async function respond() {
  const batch = await responder.receive({ max: 50, wait: '500ms' });
  await Promise.all(batch.map((m) => responder.reply(m, { body: { to: m.json().question } })));
  await responder.ack(batch);
}

export { handleSummary } from 'k6/x/broker';
