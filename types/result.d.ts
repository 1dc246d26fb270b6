// Written by `make generate`.
declare module 'k6/x/broker' {
  /** What a run found out, as summary.json holds it: docs/results.md says more of it. */
  export interface Result {
    version: 3;
    /** of the results folder */
    name: string;
    /** the same in all processes of one test */
    run: number;
    /** the process */
    instance: number;
    started: string;
    seconds: number;
    /** what was asked for */
    test: {
      /** its file's name; empty where it came by standard input */
      script: string;
      scenarios: Array<{
        name: string;
        executor: string;
        /** the function of the script that it runs */
        exec: string;
        /** planned for it */
        vus: number;
        /** those that may be added while it runs included */
        maxVUs: number;
        /** its other options, by the names that the script gives them */
        options: { [name: string]: unknown };
      }>;
    };
    /** those that the test sets on the metrics of the module, as this process decided them; none in what was merged */
    thresholds: Array<{
      /** with its tags, as the test names it */
      metric: string;
      /** the condition */
      source: string;
      held: boolean;
      /** what was measured could decide it; one that could not be judged has not held */
      judged: boolean;
      /** what was compared: milliseconds of a latency */
      value: number | null;
      /** it could not be judged */
      why: string;
    }>;
    checks: Array<{
      /** after those of the groups of k6 that it is in */
      name: string;
      passes: number;
      fails: number;
    }>;
    /** what the script said had happened, by broker.mark */
    marks: Array<{
      /** seconds from the start */
      at: number;
      what: string;
    }>;
    /** versions and machine */
    environment: { [name: string]: string };
    topics: Array<ResultTopic>;
    /** iterations that k6 dropped: arrivals for which no VU was free, and what maxDuration left of a given number */
    dropped: number;
    /** arrivals of open-arrival-rate that never had an iteration */
    unserved: number;
    /** the share of its CPUs that the process used */
    cpu: number;
    verdict: {
      valid: boolean;
      /** whether its latencies can be believed: each up to the percentile in beliefs */
      latencies: boolean;
      /** whether its account of lost, duplicated and reordered messages can be believed */
      account: boolean;
      /** why it is not valid, and what a reader must know */
      reasons: Array<ResultReason>;
      /** how far each latency can be believed */
      beliefs: Array<{
        topic: string;
        label: string;
        /** the greatest quantile of those in percentiles; 0: not even the median. A reason percentile-not-reliable says why; without one, there are too few samples */
        upTo: number;
      }>;
      /** a latency of which nothing can be believed, as it was measured by two clocks of which too little is known */
      except?: string;
      /** the phase whose latencies it is on; missing where that is the whole run */
      of?: string;
      /** the greatest quantile up to which every latency can be believed; absent where all that is supported can */
      upTo?: number;
    };
    /** by how much the coordinator's clock is ahead of this process's; absent where there was none */
    clock?: ResultClock;
    /** of a result of several processes: by how much the clock of one is ahead of another's */
    clocks?: Array<ResultClocks>;
    /** the phase that tables show first; missing where that is the whole run */
    leading?: string;
    /** the processes of the test that this one waited for in vain */
    missing?: Array<string>;
    /** the parts of the run's time that have names, in the order in which they began; missing where the run is one. All that was measured was in one of them */
    phases?: Array<ResultPhase>;
    /** what was seen of the machine while messages were sent or received; the shares are those of the worst five seconds */
    platform?: {
      /** how late a thread was that wakes every millisecond, ns */
      hiccups: ResultHistogram;
      /** the same of the process's cgroup */
      groupPressure?: number;
      /** of the machine's CPUs that k6 may run on, used by all processes */
      host?: number;
      /** of the same CPUs, used by all processes but k6 */
      others?: number;
      /** of the time, some task waited for a CPU */
      pressure?: number;
      /** of its CPUs, as many as GOMAXPROCS says, used by k6 */
      process?: number;
      /** of the same CPUs, given to other machines by the hypervisor */
      steal?: number;
    };
    /** of the test, as BROKER_PROCESSES or its execution segments said; missing where nobody did */
    processes?: number;
    /** the execution segment of the test that the process had; missing where the test was not divided, and in what was merged */
    segment?: {
      /** such as 1/3:2/3 */
      of: string;
      /** the ends of all segments, such as 0,1/3,2/3,1 */
      sequence: string;
      /** scenarios that have no VU in it */
      idle?: Array<string>;
    };
    /** the process was killed: what it measured is in its recording */
    unfinished?: boolean;
  }

  /** by how much the coordinator's clock is ahead of a process's */
  export interface ResultClock {
    /** ns */
    offset: number;
    /** ns, that the offset may be other than it is */
    bound: number;
    /** ns, what the process's clock says when the machine's says 0 */
    anchor?: number;
    /** ns, that the anchor may be other than it is */
    anchorBound?: number;
    /** names the machine's clock, which all its processes read */
    machine?: string;
  }

  /** by how much the clock of one process is ahead of that of another one */
  export interface ResultClocks {
    /** ns */
    offset: number;
    /** ns, that the offset may be other than it is */
    bound: number;
    /** both are read from the clock of one machine */
    same: boolean;
    /** a process, by its number and name */
    of: string;
    /** the other one */
    than: string;
  }

  export interface ResultGroup {
    /** its name, or subscribers where each consumer gets every message, or read back where the driver only sends and the broker was asked at the end what it has */
    group: string;
    /** how many at a time, and each that began with the earliest when another had left; each expects every message */
    subscribers: number;
    /** how many consumers were in it at most at a time, subscribers together */
    members: number;
    /** those of the consumers' side */
    trends: { [name: string]: ResultHistogram };
    percentiles: { [name: string]: Array<ResultPercentile> };
    expected: number;
    /** handed over to the application; messages, whatever the number of copies */
    received: number;
    /** read at the end of the test to complete the account, by none of its consumers */
    drained: number;
    /** expected, and neither of these: routed + lost + undelivered + uncertain */
    missing: number;
    /** arrived and not expected */
    unexpected: number;
    settled: number;
    /** copies of messages that were settled already */
    duplicated: number;
    redelivered: number;
    reordered: number;
    /** copies of messages of other processes */
    foreign: number;
    /** missing, and received by a consumer of the test on another topic */
    routed: number;
    /** missing, and the broker has them no more */
    lost: number;
    /** missing, and the broker still has as many */
    undelivered: number;
    /** missing, and it is not known what became of them */
    uncertain: number;
    /** the first of the missing messages */
    ranges?: Array<{
      id: number;
      from: number;
      to: number;
    }>;
    /** of those that are uncertain */
    why?: { [name: string]: number };
  }

  export interface ResultHistogram {
    count: number;
    /** exact, ns */
    min: number;
    /** exact, ns; 1 h for more than an hour */
    max: number;
    /** HdrHistogram V2, compressed: 1 ns to 1 h, 3 digits */
    hdr: string;
  }

  export interface ResultPercentile {
    q: number;
    /** ns */
    value: number;
    /** how many values rank above it */
    beyond: number;
    /** at least 10 do */
    supported: boolean;
    /** how much of it is lateness of the generator or of its machine */
    owed: number;
    /** it is supported, and neither that lateness nor what is missing from the distribution can mislead */
    believed: boolean;
  }

  export interface ResultPhase {
    name: string;
    /** one or, where it came again, several */
    stretches: Array<{
      /** seconds from the start */
      from: number;
      /** seconds from the start */
      to: number;
    }>;
    /** of all its stretches, of several processes the most that one has */
    seconds: number;
    /** how late a thread was that wakes every millisecond, ns */
    hiccups?: ResultHistogram;
    /** of what was merged: how many processes these are the stretches of */
    processes?: number;
  }

  /** an interval of about a second or, of a long run, a power of two of them, so that there are some hundreds at most */
  export interface ResultPoint {
    /** seconds from the start to the end of the interval */
    at: number;
    seconds: number;
    counts: { [name: string]: number };
    errors: number;
    /** of the whole process; the most of those seen each second */
    inFlight: number;
    /** confirmed and not yet received by the groups, opened or only declared; likewise */
    outstanding: number;
    /** of the process, on average */
    cpu: number;
    /** the same, over the worst 5 seconds under load that ended in the interval */
    busiest: number;
    /** by group, as the broker says; likewise */
    backlog?: { [name: string]: number };
    errorKinds?: { [name: string]: number };
  }

  /** A statement about the result: docs/verdicts.md lists the codes. */
  export interface ResultReason {
    code: 'nothing-measured' | 'no-measured-window' | 'ended-early' | 'arrivals-dropped' | 'load-incomplete' | 'generator-saturated' | 'sends-failed' | 'nothing-received' | 'clocks' | 'earlier-test' | 'drained' | 'undelivered' | 'unmeasured' | 'uncertain' | 'no-consumer' | 'lost' | 'routed' | 'foreign' | 'not-stamped' | 'percentile-not-reliable' | 'waited-for-vu' | 'not-stationary' | 'consumers-slower' | 'closed-loop' | 'embedded-broker' | 'process-missing' | 'processes-differ' | 'threshold-not-judged';
    level: 'invalid' | 'note';
    /** numbers and words of the text; durations in seconds, shares from 0 to 1 */
    values: { [name: string]: number | string };
    /** the statement in words */
    text: string;
    group?: string;
    phase?: string;
    /** of several processes: the one that it is worst in */
    process?: string;
    /** of several processes: how many have it */
    processes?: number;
    /** with the broker's address where two brokers have a topic of this name */
    topic?: string;
    /** how many topics have it, where it stands for several */
    topics?: number;
  }

  export interface ResultSpan {
    /** when the first was counted, in seconds from the start */
    first: number;
    /** when the last was */
    last: number;
  }

  /** a time, in seconds from the start */
  export interface ResultStretch {
    from: number;
    to: number;
  }

  /** the distribution of an interval, in ns: as many seconds as nearly all intervals need for a p99 with 10 values beyond it, though no more than a tenth of the run */
  export interface ResultSummary {
    /** seconds from the start to the end of the interval */
    at: number;
    seconds: number;
    /** 0: nothing was measured */
    count: number;
    p50: number;
    p90: number;
    p99: number;
    p999: number;
    max: number;
  }

  export interface ResultTopic {
    /** the address, without credentials */
    broker: string;
    driver: string;
    topic: string;
    info: {
      server: string;
      client: string;
      /** 0 where unknown */
      nodes: number;
      embedded: boolean;
    };
    /** the least that a confirmation proved here; empty where nobody sent */
    confirm: 'unconfirmed' | 'accepted' | 'replicated' | '';
    /** what confirmations proved, and by which setting, by producers that differ in it and by what the topic was when they sent; the weakest first */
    proofs: Array<{
      confirm: 'unconfirmed' | 'accepted' | 'replicated';
      how?: string;
    }>;
    /** sent by a schedule; in a closed loop due is sent */
    openLoop: boolean;
    /** something was sent by no schedule; where openLoop holds too, its trends have the suffix _closed */
    closedLoop: boolean;
    /** what is in force for each that used the topic, by connect, topic, producer, consumer, produce and consume; secrets are masked */
    options: { [name: string]: Array<{ [name: string]: unknown }> };
    /** of the whole run, see docs/metrics.md; those that are 0 may be missing */
    counts: { [name: string]: number };
    errors: Array<{
      op: string;
      kind: string;
      count: number;
    }>;
    /** the complete distribution of each latency, in ns; those without values are missing */
    trends: { [name: string]: ResultHistogram };
    /** some percentiles of each trend, in ns */
    percentiles: { [name: string]: Array<ResultPercentile> };
    /** each consumer group, and all subscribers together, or what was read back; empty: nobody consumed, and loss was not observed */
    groups: Array<ResultGroup>;
    history: Array<ResultPoint>;
    /** the distribution of each trend over time */
    overTime: { [name: string]: Array<ResultSummary> };
    /** the clocks that may be furthest apart, of those by which its latencies to the consumers were measured; absent where that was one clock, or nothing is known of them */
    apart?: ResultClocks;
    /** the script has a consumer for it */
    declared?: boolean;
    /** the driver has no consumers: what becomes of messages is not observed, but for what is read back at the end where there is such a group */
    onlySends?: boolean;
    /** what was measured in each of the phases, by name, which adds up to the whole */
    phases?: { [name: string]: ResultWindow };
    /** by the counter, from when to when something was sent, confirmed and received: rates are of these times */
    spans?: { [name: string]: ResultSpan };
  }

  export interface ResultWindow {
    counts: { [name: string]: number };
    errors: Array<{
      op: string;
      kind: string;
      count: number;
    }>;
    /** of each, the least and the greatest value are exact where they are those of the run, and else the edges of their buckets */
    trends: { [name: string]: ResultHistogram };
    percentiles: { [name: string]: Array<ResultPercentile> };
    /** what was counted and measured of each group in the phase; what was lost, duplicated, redelivered and reordered is known of the whole run only */
    groups: Array<{
      group: string;
      /** copies included */
      received: number;
      /** acknowledged, requeued or rejected */
      settled: number;
      trends: { [name: string]: ResultHistogram };
      percentiles: { [name: string]: Array<ResultPercentile> };
    }>;
  }
}
