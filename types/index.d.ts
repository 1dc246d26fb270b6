/// <reference path="drivers.d.ts" />
/// <reference path="result.d.ts" />
/**
 * k6/x/broker: load testing of message brokers in k6.
 *
 * Nothing is opened in the init context: connect, producer and consumer only describe, and the first use opens. A mistake in an
 * option throws at once, and names the option, what was given and what is allowed.
 *
 * An editor knows all this in a folder of scripts, anywhere, with the package @xk6-broker/types: its README says how.
 */
declare module 'k6/x/broker' {
  import { BaseScenario, Options as K6Options, Scenario as K6Scenario } from 'k6/options';

  /** A Go duration such as "500ms", or a number of milliseconds. */
  export type Duration = string | number;

  /**
   * What a body, a key or a header may be. Bytes are sent as they are, any other object as JSON, and a number or a boolean as text.
   * A function, a symbol and a promise are refused.
   */
  export type Bytes = string | number | boolean | ArrayBuffer | ArrayBufferView | object;

  /** A number of bytes, or a text such as "64KiB" or "1MB". */
  export type Size = number | string;

  /** Defaults for the driver's options: docs/brokers.md. */
  export type Profile = 'latency' | 'throughput' | 'durable';

  /** The driver's options for producers, consumers and topics may be given here too, as defaults for all of them. */
  export interface ConnectOptions extends DriverConnectOptions, DriverProducerOptions, DriverConsumerOptions, DriverTopicOptions {
    /** `latency`, unless the URL says otherwise. */
    profile?: Profile;
    /** How long the end of the test waits for messages that are still to come. 10s. */
    drainTimeout?: Duration;
    /**
     * How long, from when the first scenario began that uses a broker and all that it waits for was there, what is measured is in the phase `warmup`; what
     * comes after it is in the phase `measured`, with which the verdict and the tables lead. The longest that any connection asks for, unless BROKER_WARMUP is set; in the
     * init context only.
     */
    warmup?: Duration;
  }

  /** What has a message that was confirmed: nothing that is known of, one server, or more than one. */
  export type Confirm = 'unconfirmed' | 'accepted' | 'replicated';

  /** What a confirmation proves, and by which setting, such as 'acks=all, 3 replicas, min.insync.replicas 2'. */
  export interface Proof {
    confirm: Confirm;
    how: string;
  }

  /** What a driver claims. The conformance kit proves it. */
  export interface Features {
    order: 'none' | 'partition' | 'topic';
    /** What a confirmed message proves at most; what it does prove, with the producer's options and the topic as it is, `producer.ready()` and the result say. */
    confirm: Confirm;
    /** `none` of a driver that only sends, as to a metric store: there are no consumers, and `start` is empty. */
    deliver: 'at-most-once' | 'at-least-once' | 'none';
    settle: Array<'ack' | 'requeue' | 'reject'>;
    start: Array<'new' | 'earliest'>;
    settleConfirmed: 'never' | 'on-request' | 'always';
    /** Whether a send returns before the broker has answered. Where it does not, sends are made in `workers`. */
    async: boolean;
    replay: boolean;
    groups: boolean;
    fanout: boolean;
    key: boolean;
    headers: boolean;
    attempts: boolean;
    /** A message may have no body, which is not the same as an empty one. */
    tombstones: boolean;
    /** `producer.request()` works: by the broker's own request and reply or, where it has none, by two topics. Not of a driver that only sends. */
    requests: boolean;
    /** Topics have partitions, and received messages say which. */
    partitions: boolean;
    /** What `message.position` is: a number, or an identifier. In a partition it is greater for a later message, be it by number or by the parts of the identifier. */
    position: 'none' | 'offset' | 'id';
    /** Received messages have a `timestamp`. */
    timestamps: boolean;
    /** Receipts have a `position`, and a `partition` where there are any. */
    receipts: boolean;
    /** 0 where there is no fixed limit. */
    maxMessageBytes: number;
  }

  /** Features with the value that is needed, or several where the driver may have several: all of them are needed. */
  export type Needs = { [F in keyof Features]?: Features[F] extends Array<infer One> ? One | One[] : Features[F] };

  export interface Connection {
    /** The driver's name, also the value of the metric tag `driver`. */
    readonly driver: string;
    /** The address, without credentials. */
    readonly url: string;
    readonly features: Features;
    /** Opens nothing yet. In one VU equal arguments give the same producer, also in each iteration. */
    producer(topic: string, options?: ProducerOptions): Producer;
    /** Opens nothing yet. In one VU equal arguments give the same consumer, one member of the group; a second member in the same VU needs other options, such as another `prefetch`. */
    consumer(topic: string, options?: ConsumerOptions): Consumer;
    /** Throws, in init, where the broker lacks what the scenario needs: `require({ fanout: true, settle: ['requeue'] })`. */
    require(needs: Needs): void;
    /**
     * Resolves when the topic can be used. That it exists already is no error, unless it is otherwise than an option asks for that was given; of the options
     * that were not, any value will do. RabbitMQ, which does not tell what a queue is, refuses one that differs in any option, those with a default included. Brokers
     * whose topics need no creation do nothing.
     */
    createTopic(topic: string, options?: TopicOptions): Promise<void>;
    /** In setup and teardown of a test of several processes, as purge, done once, when all have come to it: docs/load-models.md. */
    deleteTopic(topic: string): Promise<void>;
    /** Removes the messages and keeps the topic. */
    purge(topic: string): Promise<void>;
    /**
     * How many messages of the topic the group has not settled, over all connections of this process. RabbitMQ tells only what is ready to be delivered: what
     * consumers of this process at the same address hold is added to that, and what those of other processes, or at another address of the broker, hold
     * is not in it. RocketMQ does not count what is delayed, or was given back and has not come again. Of a compacted topic of Kafka it is the most that there may be.
     * Pulsar counts a batch of which a part is settled as a whole, and beyond the oldest 10,000 entries of a partition each batch as one message.
     */
    backlog(topic: string, group?: string): Promise<number>;
  }

  export interface TopicOptions extends DriverTopicOptions {
    profile?: Profile;
    /** Where the broker has partitions. 1. */
    partitions?: number;
    /** Where the broker has replicas. 1. The result says how many there are where the broker tells: NATS JetStream and Kafka. */
    replicas?: number;
  }

  export interface ProducerOptions extends DriverProducerOptions {
    profile?: Profile;
    /** How many messages may be sent and not yet confirmed, over all VUs that share the connection. 4096. */
    maxInFlight?: number;
    /** How many sends may wait for the broker at a time, where `features.async` is false: a driver whose client waits in each. 32. */
    workers?: number;
    /** How many connections the VUs share: 1, or 'per-vu' for one each. */
    connections?: number | 'per-vu';
    /**
     * Where the trace stamp rides, which end-to-end latency and accounting read: `auto` is a header where the broker has headers, else
     * the front of the body; messages of produce() carry it in the body, unless `payload.bodies` are given; of a driver that only sends none does.
     */
    stamp?: 'auto' | 'header' | 'body' | 'off';
    /**
     * Of a broker that has no request and reply of its own: a topic that is there, to which the replies to this producer's requests go. Without it the test makes
     * one for each connection and deletes it at the end. Where a topic's messages are shared among all consumers, each process needs one of its own.
     */
    replyTopic?: string;
  }

  export interface OutgoingMessage {
    /** null is a tombstone, and refused without `features.tombstones`. A Map, a Set or a promise is refused, because JSON has no form for it. */
    body: Bytes | null;
    /** Chooses the partition, where the broker has partitions, or the route, where a producer's option says so (`routeByKey`); ignored otherwise. */
    key?: Bytes;
    /** The name X-K6-Stamp, in any case, is the trace stamp's and refused. The headers of a received message come without it. */
    headers?: { [name: string]: Bytes };
    /** Options of the driver for one message, such as Kafka's `partition`; where it has none of that name the producer's own hold. */
    properties?: DriverMessageOptions;
  }

  /** What became of a message. Times are milliseconds. */
  export interface Receipt {
    sequence: number;
    /** Since the Unix epoch. */
    due: number;
    /** Since the Unix epoch. */
    sent: number;
    /** Publish latency: due → confirmed. */
    latency: number;
    /** Publish time: sent → confirmed. */
    time: number;
    /** Where the broker has the message; undefined where it does not say, as without `features.receipts`, or without acks. What is received has the same. */
    partition?: number;
    position?: number | string;
  }

  export interface Producer {
    readonly topic: string;
    /** The driver's options as they resolved. */
    readonly options: { [name: string]: unknown };
    /** Resolves when the producer is open. Optional: the first send opens it. */
    ready(): Promise<Proof>;
    /** Resolves when the broker has confirmed; rejects with a BrokerError. */
    send(message: OutgoingMessage | string | ArrayBuffer | ArrayBufferView): Promise<Receipt>;
    /** At most maxInFlight messages at a time. */
    send(messages: Array<OutgoingMessage | string | ArrayBuffer | ArrayBufferView>): Promise<Receipt[]>;
    /**
     * Sends and waits for one reply, 5s at most. Where the broker has no request and reply of its own, the message says in two headers where its reply goes and what that
     * has to repeat: `reply-to` and `correlation-id`, on Kafka `kafka_replyTopic` and `kafka_correlationId`. `redis-list` and `redis-pubsub` have no headers and refuse it.
     */
    request(message: OutgoingMessage | string, options?: { timeout?: Duration }): Promise<Message>;
    /**
     * The loop in Go: one iteration for a whole run, at rates that no JavaScript loop reaches. The scenario must give it the time that it takes: a
     * schedule that is interrupted makes the run not valid.
     */
    produce(options: ProduceOptions): Promise<Produced>;
  }

  export interface ProduceOptions {
    /**
     * Arrivals per timeUnit, over all producers and, in a scenario of executor `producers`, all processes, until duration or count. Without rate, stages or trace it is a closed loop: as fast
     * as maxInFlight lets, until duration or count.
     */
    rate?: number;
    /** 1s. */
    timeUnit?: Duration;
    /** Linear ramps, as in k6: from startRate to each target in turn. */
    stages?: Array<{ target: number; duration: Duration }>;
    startRate?: number;
    /**
     * The text of a trace: a due time on each line, in seconds or as a duration, and after it, on all lines or on none, the message's size in bytes and, where it
     * has one, its key: `12.5 512 order-17`. It excludes the other options of arrivals, and sizes and keys those of the payload.
     */
    trace?: string;
    /** How arrivals keep to the rate: evenly, or at random. */
    arrivals?: 'constant' | 'poisson';
    /** Of what is random, arrivals, sizes, keys and the choice of bodies: equal seeds give equal loads, with any number of producers. 0. */
    seed?: number;
    duration?: Duration;
    /** How many messages at most; like rate, of the whole test in a scenario of executor `producers`. */
    count?: number;
    /** Senders side by side, each with its own sequence; of several processes, in all of them. 1. */
    producers?: number;
    /** How many messages at most are handed over in one call, of those that are due. Chosen by size. */
    batch?: number;
    payload?: Payload;
  }

  /** What the messages of produce() are like. */
  export interface Payload {
    /** Bytes of the body, the stamp included where it is in the body. 100. */
    size?: number | Sizes;
    /** The share of random bytes, 0 to 1; the rest is zeros. 1. */
    random?: number;
    /** How many different keys, in turn or as a distribution says; 0 for none. */
    keys?: number | Keys;
    /** Bodies in place of generated ones, such as the lines of a file in a SharedArray of k6. They go out as they are, with the stamp in a header, where the broker has headers. */
    bodies?: readonly Bytes[];
    /** How bodies are chosen: one after the other, or at random. `in-turn`. */
    order?: 'in-turn' | 'random';
    /** Of every message. Where the broker has headers. */
    headers?: { [name: string]: Bytes };
    /** Of every message: options of the driver for messages. */
    properties?: DriverMessageOptions;
  }

  /**
   * `uniform`: all sizes from min to max equally often. min is 0, or the bytes of the stamp where that is in the body. A list: each size as often as its weight (1) says.
   */
  export type Sizes =
    | { distribution: 'uniform'; min?: number; max: number }
    | Array<{ size: number; weight?: number }>;

  /** `uniform`: all keys equally often. `zipf`: the i-th key, from 1, as often as 1 / i to the power of the exponent (1) says. */
  export type Keys = { count: number; distribution: 'uniform' } | { count: number; distribution: 'zipf'; exponent?: number };

  export interface Produced {
    due: number;
    sent: number;
    confirmed: number;
    failed: number;
    /** From the start to the last confirmation. */
    seconds: number;
    /** `confirmed / seconds`: of a few messages at a fixed rate it is above that rate, as there is no pause after the last. */
    rate: number;
  }

  export interface ConsumerOptions extends DriverConsumerOptions {
    profile?: Profile;
    /** Shares the messages among its members. Without one, on a broker with fan-out, the consumer gets every message. */
    group?: string;
    /**
     * How many messages may be with this consumer and not settled. 1000. Where the broker lends them for a time (`lease`, `visibilityTimeout`, `invisibleTime`),
     * those that were received and whose time is over count no more. Pulsar may send nothing more from seven eighths of it on.
     */
    prefetch?: number;
    /** Where to begin without a committed position: `new`, or `earliest`. */
    start?: 'new' | 'earliest';
    /** Wait for the broker's answer to an ack, where it can give one. Then a promise of ack rejects if the broker refuses. false. */
    confirmAcks?: boolean;
    /** How many connections the VUs share: 'per-vu', or a number. */
    connections?: number | 'per-vu';
  }

  /** A received message. Nothing is decoded until it is asked for. */
  export interface Message {
    readonly topic: string;
    /** A string where it is UTF-8, else its bytes. Sent on, it is the same. */
    readonly key: string | ArrayBuffer | null;
    /** Each value a string where it is UTF-8, else its bytes. */
    readonly headers: { [name: string]: string | ArrayBuffer };
    /** Those that the message has of the driver's options of messages. Durations are milliseconds. */
    readonly properties: DriverMessageOptions;
    /** null for a tombstone, where `features.tombstones`. */
    readonly body: ArrayBuffer | null;
    /** Deliveries so far, this one included; 0 where the broker does not count. */
    readonly attempt: number;
    /** undefined where there are none. */
    readonly partition?: number;
    /** Where the broker has the message: Kafka's offset, JetStream's sequence number, a stream's offset of RabbitMQ, an entry's id of Redis ('1526919030474-55'); undefined where it has none. */
    readonly position?: number | string;
    /**
     * When the broker says that the message is from, in milliseconds since the Unix epoch, as `Date.now()`: Kafka's timestamp of the record, which is its producer's unless the topic's
     * `message.timestamp.type` is LogAppendTime; when JetStream stored it; the time in the id of a Redis entry. undefined where it does not say. By the clock of whoever set it: no latency is measured by it.
     */
    readonly timestamp?: number;
    /** End-to-end latency in milliseconds; null without a stamp of this run. */
    readonly latency: number | null;
    text(): string;
    json(): any;
  }

  export interface Consumer {
    readonly topic: string;
    readonly options: { [name: string]: unknown };
    /** Resolves when the consumer is assigned and would see the next message. */
    ready(): Promise<void>;
    /** Resolves to the messages that are there, after waiting for the first: at most max (1), at most for wait (1s). */
    receive(options?: { max?: number; wait?: Duration }): Promise<Message[]>;
    /** Done with these messages, which this consumer received. Does nothing with them where the broker knows no acks. */
    ack(messages: Message | Message[]): Promise<void>;
    /** Gives messages back, to be delivered again; with { requeue: false } it is reject. */
    nack(messages: Message | Message[], options?: { requeue?: boolean }): Promise<void>;
    /** Not to be delivered again: dropped or dead-lettered. */
    reject(messages: Message | Message[]): Promise<void>;
    /** Answers a message that asked for a reply. Resolves when the broker has the answer, where it has no request and reply of its own; else when the client library has it. */
    reply(to: Message, reply: OutgoingMessage | string): Promise<void>;
    /**
     * The loop in Go: receive, work, ack, until one of duration, count and idle. In a scenario of executor `consumers` it ends with the scenario
     * at the latest, and needs none of them. What it has received and not begun to work on is for the next consume or receive of this consumer.
     */
    consume(options?: ConsumeOptions): Promise<Consumed>;
    /** Leaves the group; the next receive joins again. Whether a message from before can still be settled is the broker's to say. */
    close(): Promise<void>;
  }

  export interface ConsumeOptions {
    /** No message is begun after it; the one at work is finished. */
    duration?: Duration;
    /** Messages over all consumers: exactly so many with `work`, else to the end of the batch that reaches it. */
    count?: number;
    /** Ends when nothing came for so long. */
    idle?: Duration;
    /** Members of the group side by side; in all processes, in a scenario of executor `consumers` without `vus`. All but one leave at the end of the loop. 1. */
    consumers?: number;
    /** Messages per receive, at most. 100. */
    batch?: number;
    /** `batch` where the broker knows acks, else `none`. */
    ack?: 'batch' | 'message' | 'none';
    /** Time spent on each message. */
    work?: Duration;
  }

  export interface Consumed {
    received: number;
    settled: number;
    errors: number;
    /** From the call to the end of the work on the last message. */
    seconds: number;
    /** Received per second of these. Messages that had come to the client before the call took next to none of them. */
    rate: number;
  }

  /** The reason that a promise of this module is rejected with. */
  export interface BrokerError extends Error {
    name: 'BrokerError';
    kind:
      | 'timeout' | 'disconnected' | 'throttled' | 'rejected' | 'not_found' | 'denied' | 'unsupported' | 'closed' | 'canceled'
      | 'unknown';
    op: string;
    driver: string;
  }

  export interface DriverInfo {
    name: string;
    schemes: string[];
    doc: string;
    features: Features;
  }

  /**
   * Understands a URL such as `nats://user:password@host1:4222,host2:4222?option=value`. `embedded:` is a real broker inside this process.
   * The scheme stands once, and every host is checked here.
   * What is neither letter nor digit in a user, a password or a value is written in percent-encoding, as encodeURIComponent does it.
   * In one VU equal arguments give the same connection, also in each iteration.
   */
  export function connect(url: string, options?: ConnectOptions): Connection;

  /**
   * What a script exports as `options`: k6's own, with the executors of this module. In TypeScript it is `export const options: Options`, in
   * JavaScript a comment before it says so: `@type {import('k6/x/broker').Options}`.
   */
  export interface Options extends Omit<K6Options, 'scenarios'> {
    scenarios?: { [name: string]: Scenario };
  }

  /** A scenario of one of k6's executors, or of this module's. */
  export type Scenario = K6Scenario | OpenArrivalRateScenario | ProducersScenario | ConsumersScenario;

  /** Iterations start when a schedule says, and an arrival that finds no VU free waits for one: docs/load-models.md. */
  export type OpenArrivalRateScenario = OpenArrivalRate & (SteadyRate | RampingRate);

  /** `rate` arrivals in every `timeUnit`, for `duration`. */
  export interface SteadyRate {
    /** More than 0; of the whole test, not of a VU. */
    rate: number;
    /** How long arrivals come: 1s or more. */
    duration: Duration;
    startRate?: never;
    stages?: never;
  }

  /** From `startRate` to the target of each stage in turn, linearly. */
  export interface RampingRate {
    /** Arrivals in every `timeUnit` at the start. 0. */
    startRate?: number;
    /** Arrivals in every `timeUnit` at the end of each stage; all stages together last 1s or more. */
    stages: Array<{ target: number; duration: Duration }>;
    rate?: never;
    duration?: never;
  }

  export interface OpenArrivalRate extends Omit<BaseScenario, 'executor'> {
    executor: 'open-arrival-rate';
    /** What `rate`, `startRate` and the stages' targets are counted in. 1s. */
    timeUnit?: Duration;
    /** How arrivals keep to the rate: evenly, or at random. `constant`. */
    arrivals?: 'constant' | 'poisson';
    /** Of the random arrivals, with `poisson` only: equal seeds give equal due times. 0. */
    seed?: number;
    /** VUs that are there from the start: the rate × the time of an iteration are needed. */
    preAllocatedVUs: number;
    /** The greatest number of VUs: while arrivals wait, VUs are added one after the other. As many as `preAllocatedVUs`. */
    maxVUs?: number;
    /** How many arrivals may wait in a process before the test is given up. 100000. */
    maxQueue?: number;
  }

  /**
   * VUs that loop until all other scenarios are over and everything has arrived. `open-arrival-rate` and `produce` begin when they are ready:
   * docs/load-models.md.
   */
  export interface ConsumersScenario extends Omit<BaseScenario, 'executor'> {
    executor: 'consumers';
    /** Of the whole test. One in each process, where `consume` divides its `consumers`. */
    vus?: number;
    /** How long they go on at least: needed where those who send are in another process. */
    duration?: Duration;
  }

  /** One VU in each process, which calls its function once; `produce` in it sends the share of the process: docs/load-models.md. */
  export interface ProducersScenario extends Omit<BaseScenario, 'executor'> {
    executor: 'producers';
    /** How long the function may take. As long as it does. */
    maxDuration?: Duration;
  }

  /** What the running iteration was started for; undefined outside an open-arrival-rate scenario. Works in any script, http included. */
  export function arrival(): Arrival | undefined;

  export interface Arrival {
    /** When the iteration was due, in milliseconds since the Unix epoch. */
    due: number;
    /** How much later it began, in milliseconds. */
    lag: number;
    /** The arrival's number in the scenario, from 0, over all execution segments. */
    index: number;
  }

  /** What this k6 can connect to. */
  export function drivers(): DriverInfo[];
  /**
   * What is known of the run so far; complete in handleSummary. It is what summary.json holds, without its name: docs/results.md.
   */
  export function result(): Result;

  /**
   * Writes summary.json, report.html, .hgrm and .hlog, and leaves k6's own summary as it is: `export { handleSummary } from 'k6/x/broker';`. A script with its own handleSummary calls
   * it there. The environment has its options (BROKER_REPORT, BROKER_REPORT_NAME, BROKER_REPORT_DIR, BROKER_REPORT_OVERWRITE, BROKER_REPORT_MEANWHILE, BROKER_COORDINATOR): see
   * docs/results.md. If a file cannot be written, k6 exits with 74 instead of 0.
   */
  export function handleSummary(): void;

  /**
   * Notes that something happened, such as a fault that the script caused: the results page shows it as a vertical line, dashboards as an
   * annotation, and the counter `broker_marks` has it by the tag `mark`. Not in the init context. Use few different texts: each is a value of a tag.
   */
  export function mark(what: string): void;

  /**
   * Begins a phase of the run, or goes on with one of that name: what is counted from now on is in it, and the latencies of messages that are due from now on. Every VU is: one call is enough. The results and the
   * page have each phase by itself beside the whole, and k6's samples of latencies and counters have it by the tag `phase`:
   * `'broker_e2e_latency{phase:peak}': ['p(99)<50']`. What is measured before the first is in the phase `start`, which no threshold can ask for; with one that is called `measured` the verdict and
   * the tables lead. A phase that is begun within the warm-up begins when that is over. Throws where there would be more than 50 phases or 1,000 changes.
   */
  export function phase(name: string): void;

  /**
   * What a file exports as `study`, for `k6 x broker study FILE.js`: docs/sweeps-and-capacity.md. Such a file is data: it has __ENV and SCALE, and imports nothing but other
   * files by relative paths.
   */
  export interface Study {
    title: string;
    question: string;
    source: { citation: string; url: string };
    /** On what was published was measured: machines and versions. */
    original?: string;
    /** What the study needs, as scripts/broker calls it. */
    brokers?: string[];
    /** Conclusions that were published. */
    claims?: string[];
    /** What could not be kept the same. */
    changed?: string[];
    /** How often each cell is run. 1. */
    repeat?: number;
    tests: StudyTest[];
  }

  /** A table: cells that are compared with one another. They run in shuffled order, before the cells of the next test. */
  export interface StudyTest {
    /** Small letters, digits and -. */
    name: string;
    title: string;
    note?: string;
    /** The script's path, from the study's file. */
    script: string;
    /** Of all cells. */
    settings?: StudySettings;
    columns: Array<{
      title: string;
      /** Such as `e2e_latency p99`, `confirmed rate` or `lost`. */
      measured: string;
      /** Of which phase of the run; that which leads where it is not given. */
      phase?: string;
      /** Whether it is shown as a multiple of the base's, too. true. */
      ratio?: boolean;
    }>;
    cells: StudyCell[];
    /** The name of the cell that the others are measured against. */
    base?: string;
    /** RATE of each cell: a share of the most that a valid run of another test had in its first column. */
    rate?: { test: string; share: number };
  }

  export interface StudyCell {
    name: string;
    /** Beside those of the test, or in their place. */
    settings?: StudySettings;
    /** By the titles of columns: milliseconds of a latency, or what is published in words. */
    published?: { [column: string]: number | string | undefined };
  }

  /** Variables of the script's __ENV. A cell with a setting that is undefined or empty is not run; the page names it. */
  export interface StudySettings {
    [name: string]: string | number | boolean | undefined;
  }

  const broker: { connect: typeof connect; arrival: typeof arrival; drivers: typeof drivers; result: typeof result; handleSummary: typeof handleSummary; mark: typeof mark; phase: typeof phase };
  export default broker;
}

/** In the file of a study: what `k6 x broker study --scale` says, more than 0 and up to 1. */
declare const SCALE: number;

/** k6/x/broker/NAME, as 'k6/x/broker/nats': what the driver is. A script imports it to say that it needs it. */
declare module 'k6/x/broker/*' {
  import { DriverInfo } from 'k6/x/broker';

  const driver: DriverInfo;
  export default driver;
}
