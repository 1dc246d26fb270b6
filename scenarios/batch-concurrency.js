// The sweep of a store's ingestion: so many messages in a request, so many requests at a time, each pair as fast as it goes, or one pair on a schedule. It is
// for drivers that only send, and wait for the answer of each request:
//
//   BROKER_URL=influxdb://127.0.0.1:8086/load?createDatabase=true ./k6 run scenarios/batch-concurrency.js
//   BROKER_URL=blueflood://127.0.0.1:19000/load                   ./k6 run scenarios/batch-concurrency.js
//
//   BATCHES      messages of a request                1,10,100
//   CONCURRENCY  requests at a time                   1,10
//   DURATION     of each pair                         10s
//   RATE         messages per second of the one pair that there is then, on a schedule; 0: as fast as they are answered    0
//   WARMUP       before each, which counts nowhere    2s
//   PAUSE        after each                           1s
//   SIZE         bytes of a message                   100
//   READ_BACK    of Blueflood: yes or no              yes
//
// Each pair is a topic of its own. A closed loop measures what a store takes, and no latency that users would see.
import broker from 'k6/x/broker';
import { sleep } from 'k6';
import { choice, list, number, seconds, topicNamed, url } from './lib/settings.js';

const topic = topicNamed('xk6-batch-concurrency');
const conn = broker.connect(url);
conn.require({ deliver: 'none', async: false });
const duration = seconds('DURATION', '10s');
const warmup = seconds('WARMUP', '2s');
const pause = seconds('PAUSE', '1s');
const size = number('SIZE', 100);
const rate = number('RATE', 0);

// A store of numbers cannot have what generated bodies are: of each it gets the size.
const numeric = conn.driver === 'blueflood' ? { value: /** @type {const} */ ('size'), readBack: choice('READ_BACK', 'yes', ['yes', 'no']) === 'yes' } : {};
const pairs = list('BATCHES', '1,10,100').flatMap((batch) => list('CONCURRENCY', '1,10').map((workers) => {
  // There is always room for one more batch than is under way: each request has as many messages as are asked for.
  const options = { workers, maxInFlight: batch * (workers + 1), ...numeric };
  const of = (name) => conn.producer(`${topic}-${name}batch${batch}-concurrency${workers}`, options);
  return { batch, workers, warm: of('warmup-'), load: of('') };
}));

const [{ batch: each, workers: atATime }] = pairs;
if (rate > 0 && pairs.length > 1) throw new Error(`RATE: it is of one pair, and BATCHES and CONCURRENCY make ${pairs.length}`);

export const options = {
  scenarios: rate > 0
    ? { requests: { executor: 'open-arrival-rate', exec: 'request', rate: rate / each, duration: `${duration}s`, preAllocatedVUs: atATime } }
    : { sweep: { executor: 'per-vu-iterations', exec: 'sweep', maxDuration: `${pairs.length * (duration + warmup + pause + 60)}s` } },
  thresholds: { 'broker_errors{op:send}': ['count==0'] },
};

const metrics = Array(each).fill('x'.repeat(size));

export async function request() {
  await pairs[0].load.send(metrics);
}

export async function sweep() {
  for (const { batch, workers, warm, load } of pairs) {
    const each = { batch, payload: { size } };
    if (warmup > 0) await warm.produce({ ...each, duration: `${warmup}s` });
    const made = await load.produce({ ...each, duration: `${duration}s` });
    // @ts-ignore: k6's types have no console
    console.log(`batch ${batch}, concurrency ${workers}: ${Math.round(made.rate)} messages/s confirmed, ${made.failed} failed`);
    sleep(pause);
  }
}

export { handleSummary } from 'k6/x/broker';
