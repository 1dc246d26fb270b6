// Every subscriber gets every message.
//
//   RATE         messages per second    500
//   DURATION     of the sending         10s
//   SUBSCRIBERS  how many               5
import broker from 'k6/x/broker';
import { number, seconds, topicNamed, url } from './lib/settings.js';

const topic = topicNamed('xk6-fan-out');
const duration = seconds('DURATION', '10s');
const subscribers = number('SUBSCRIBERS', 5, 1);
const conn = broker.connect(url);
conn.require({ fanout: true });
const news = conn.producer(topic);
const subscriber = conn.consumer(topic);

export const options = {
  scenarios: {
    subscribe: { executor: 'per-vu-iterations', vus: subscribers, maxDuration: `${duration + 30}s`, exec: 'subscribe' },
    publish: {
      executor: 'open-arrival-rate', rate: number('RATE', 500, 1), timeUnit: '1s', startTime: '2s', duration: `${duration}s`,
      preAllocatedVUs: 50, exec: 'publish',
    },
  },
  thresholds: { broker_lost: ['count==0'], broker_duplicated: ['count==0'] },
};

export async function setup() {
  await conn.createTopic(topic);
}

export async function publish() {
  await news.send({ body: `news ${__ITER}` });
}

export async function subscribe() {
  await subscriber.consume({ duration: `${duration + 3}s` });
}

export { handleSummary } from './lib/report.js';
