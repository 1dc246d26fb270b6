// What is wrong, each line with a mistake after a comment that expects it: what the types take all the same is an error.
import broker from 'k6/x/broker';
import nats from 'k6/x/broker/nats';

// @ts-expect-error: a URL is a string
broker.connect(4222);
// @ts-expect-error: one of three
broker.connect('embedded:', { profile: 'fast' });
// @ts-expect-error: drainTimeout
broker.connect('embedded:', { drainTimout: '5s' });
// @ts-expect-error: of a producer, not of a connection
broker.connect('embedded:', { maxInFlight: 5 });

const conn = broker.connect('embedded:');
// @ts-expect-error: maxInFlight
conn.producer('orders', { maxInflight: 5 });
// @ts-expect-error: a number
conn.producer('orders', { maxInFlight: '5' });
// @ts-expect-error: auto, header, body, off
conn.producer('orders', { stamp: 'none' });
// @ts-expect-error: of a consumer
conn.producer('orders', { prefetch: 5 });
// @ts-expect-error: all, leader, none
conn.producer('orders', { acks: 'one' });
// @ts-expect-error: idempotence
conn.producer('orders', { idempotent: true });
// @ts-expect-error: group
conn.consumer('orders', { gruop: 'workers' });
// @ts-expect-error: new, earliest
conn.consumer('orders', { start: 'latest' });
// @ts-expect-error: ackWait
conn.consumer('orders', { ackwait: '5s' });
// @ts-expect-error: partitions
conn.createTopic('orders', { partition: 6 });
// @ts-expect-error: file, memory
conn.createTopic('orders', { storage: 'disk' });
// @ts-expect-error: no such feature
conn.require({ speed: true });
// @ts-expect-error: requeue
conn.require({ settle: ['return'] });

const producer = conn.producer('orders');
const consumer = conn.consumer('orders');
// @ts-expect-error: body
producer.send({ text: 'a' });
// @ts-expect-error: the time-out is an option of a request
producer.send({ body: 'a' }, { timeout: '5s' });
// @ts-expect-error: timeout
producer.request({ body: 'a' }, { timeOut: '5s' });
// @ts-expect-error: rate
producer.produce({ rates: 5, duration: '5s' });
// @ts-expect-error: constant, poisson
producer.produce({ rate: 5, arrivals: 'random', duration: '5s' });
// @ts-expect-error: size
producer.produce({ count: 5, payload: { bytes: 5 } });
// @ts-expect-error: wait
consumer.receive({ max: 5, timeout: '5s' });
// @ts-expect-error: a message, not its text
consumer.ack('a');
// @ts-expect-error: requeue
consumer.nack([], { requeu: false });
// @ts-expect-error: batch, message, none
consumer.consume({ count: 5, ack: 'all' });
// @ts-expect-error: it takes no arguments
consumer.ready('5s');

// @ts-expect-error: a driver is described, not called
nats();
// @ts-expect-error: the environment has its options
broker.handleSummary({ name: 'mine' });
// @ts-expect-error: a text
broker.mark(5);
// @ts-expect-error: undefined outside of open-arrival-rate
broker.arrival().due;
// @ts-expect-error: reasons
broker.result().verdict.reason;
// @ts-expect-error: percentiles are of a trend
broker.result().topics[0].percentiles.e2e_latency.p99;
// @ts-expect-error: replicated, accepted, unconfirmed
broker.result().topics[0].confirm === 'yes';

/** @type {import('k6/x/broker').Options} */
export const options = {
  scenarios: {
    // @ts-expect-error: no such executor
    a: { executor: 'open-arrivals', rate: 5, duration: '5s', preAllocatedVUs: 5 },
    // @ts-expect-error: preAllocatedVUs is missing
    b: { executor: 'open-arrival-rate', rate: 5, duration: '5s' },
    // @ts-expect-error: preAllocatedVUs
    c: { executor: 'open-arrival-rate', rate: 5, duration: '5s', preallocatedVUs: 5 },
    // @ts-expect-error: neither rate nor stages
    d: { executor: 'open-arrival-rate', duration: '5s', preAllocatedVUs: 5 },
    // @ts-expect-error: the stages have durations
    e: { executor: 'open-arrival-rate', duration: '5s', stages: [{ target: 5, duration: '5s' }], preAllocatedVUs: 5 },
    // @ts-expect-error: a stage needs a target
    f: { executor: 'open-arrival-rate', stages: [{ duration: '5s' }], preAllocatedVUs: 5 },
    // @ts-expect-error: constant, poisson
    g: { executor: 'open-arrival-rate', rate: 5, duration: '5s', preAllocatedVUs: 5, arrivals: 'exponential' },
    // @ts-expect-error: maxQueue
    h: { executor: 'open-arrival-rate', rate: 5, duration: '5s', preAllocatedVUs: 5, queue: 5 },
    // @ts-expect-error: vus
    i: { executor: 'consumers', VUs: 5 },
    // @ts-expect-error: they end by themselves
    j: { executor: 'consumers', maxDuration: '5s' },
    // @ts-expect-error: duration is missing from one of k6's own
    k: { executor: 'constant-vus', vus: 5 },
    // @ts-expect-error: startTime
    l: { executor: 'consumers', startAt: '5s' },
    // @ts-expect-error: each process has one
    m: { executor: 'producers', vus: 5 },
  },
};

/** @type {import('k6/x/broker').Options} */
export const others = {
  // @ts-expect-error: thresholds
  treshholds: { broker_lost: ['count==0'] },
};
