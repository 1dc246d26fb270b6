// Every subscriber gets every message.
//
//   RATE         messages per second    500
//   DURATION     of the sending         10s
//   SUBSCRIBERS  how many               5
import broker from 'k6/x/broker';
import { number, seconds, topicNamed, url } from './lib/settings.js';

const topic = topicNamed('xk6-fan-out');
const conn = broker.connect(url);
conn.require({ fanout: true });
const news = conn.producer(topic);
const subscriber = conn.consumer(topic);

export const options = {
  scenarios: {
    subscribe: { executor: 'consumers', vus: number('SUBSCRIBERS', 5, 1), exec: 'subscribe' },
    publish: {
      executor: 'open-arrival-rate', rate: number('RATE', 500, 1), duration: `${seconds('DURATION', '10s')}s`, preAllocatedVUs: 50, exec: 'publish',
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
  await subscriber.consume();
}

export { handleSummary } from 'k6/x/broker';
