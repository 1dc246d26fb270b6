// One run, from its start to its end.
import { DashboardBuilder, DashboardCursorSync, RowBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  annotation, ofConsumers, ofGroups, ofLoop, ofProducers, ofRun, ofScenario, ofTopic, others, perSecond, variables,
} from './influx';
import type { Loop, Query } from './influx';
import { curves, fault, latencies, lines, number, numbers, quantiles, rates, messagesPerSecond, verdict } from './panels';

const sum = (counter: string, where: string) => `SELECT sum("value") FROM "broker_${counter}" WHERE ${where}`;

const gauge = (metric: string, where: string, alias: string, by = ''): Query => ({
  query: `SELECT max("value") FROM "${metric}" WHERE ${where} GROUP BY time($__interval)${by} fill(none)`, alias,
});

/** The samples of a trend that has no gauges of its quantiles. */
const samples = (trend: string, where: string): Query[] => [50, 99].map((p) => ({
  query: `SELECT percentile("value", ${p}) FROM "broker_${trend}" WHERE ${where} GROUP BY time($__interval) fill(none)`, alias: `p${p}`,
}));

const curve = (trends: string, loop: Loop, where: string, apart: string) =>
  `SELECT "value" AS "ms", ${apart}, "one_in" FROM "broker_curve" WHERE "trend" =~ /^(${trends})$/ AND ${ofLoop(loop)} AND ${where}`;

const dashboard = new DashboardBuilder('xk6-broker: run').uid('xk6-broker-run').tags(['xk6-broker']).editable()
  .description('One run of a load test of a message broker. Choose it by the tag testid (k6 run --tag testid=NAME), or by time.')
  .time({ from: 'now-15m', to: 'now' }).refresh('5s').tooltip(DashboardCursorSync.Crosshair).link(others)
  .annotation(annotation('start, end and marks', 'blue', `SELECT "value", "mark" FROM "broker_marks" WHERE ${ofRun}`, 'mark'))
  .annotation(annotation('disconnected', 'red',
    `SELECT "value", "kind" FROM "broker_errors" WHERE "kind" = 'disconnected' AND ${ofTopic} LIMIT 100`, 'kind'));

variables(false).forEach((variable) => dashboard.withVariable(variable));

export const run = dashboard
  .withPanel(verdict(`SELECT last("value") FROM "broker_valid" WHERE ${ofRun}`, 4))
  .withPanel(number('due', 'Arrivals whose time has come.', sum('due', ofProducers), 4))
  .withPanel(number('sent', 'Handed to the client library.', sum('sent', ofProducers), 4))
  .withPanel(number('confirmed', 'Confirmed by the broker, in the driver\'s sense.', sum('confirmed', ofProducers), 4))
  .withPanel(number('received', 'Handed over to the script, copies included, by all groups that are chosen.', sum('received', ofConsumers), 4))
  .withPanel(number('settled', 'Acked, requeued or rejected.', sum('settled', ofConsumers), 4))
  .withPanel(fault('lost', 'Confirmed, not received, and the broker has them no more. Known at the end.', sum('lost', ofGroups), 3))
  .withPanel(fault('undelivered', 'Confirmed, not received, still at the broker. Known at the end.', sum('undelivered', ofGroups), 3))
  .withPanel(fault('uncertain', 'Confirmed, not received, and it cannot be known whether the broker has them. Known at the end.', sum('uncertain', ofGroups), 3))
  .withPanel(fault('duplicated', 'Copies of messages that were settled already.', sum('duplicated', ofGroups), 3))
  .withPanel(fault('reordered', 'Overtaken by a later message of the same producer and partition, at the same consumer.', sum('reordered', ofGroups), 3))
  .withPanel(fault('corrupted', 'Stamp or body damaged. Known at the end.', sum('corrupted', ofGroups), 3))
  .withPanel(number('redelivered', 'Copies that the broker delivered again.', sum('redelivered', ofGroups), 3))
  .withPanel(number('drained', 'Received only by the reading-on at the end: not lost, and in no latency. Known at the end.', sum('drained', ofGroups), 3))

  .withRow(new RowBuilder('Load'))
  .withPanel(lines('Rates', 'Due by the schedule, sent, confirmed and received.', messagesPerSecond,
    ...['due', 'sent', 'confirmed'].map((counter) => ({ query: perSecond(counter, ofProducers), alias: counter })),
    { query: perSecond('received', ofConsumers), alias: 'received' }))
  .withPanel(lines('Errors', 'By what failed and how.', 'suffix:errors/s', {
    query: perSecond('errors', ofProducers, '"op", "kind"'), alias: '$tag_op: $tag_kind',
  }))
  .withPanel(lines('Bodies', 'Bytes of the bodies of messages.', 'Bps',
    { query: perSecond('bytes_sent', ofProducers), alias: 'sent' }, { query: perSecond('bytes_received', ofConsumers), alias: 'received' }))
  .withPanel(rates('Copies', 'What was delivered more than once, or out of order.', ofGroups, 'duplicated', 'redelivered', 'reordered'))

  .withRow(new RowBuilder('Latency from when a message was due'))
  .withPanel(latencies('Publish latency', 'Due to confirmed: what a caller waits. Dashed: sent to confirmed, which leaves out what queued behind a stall. The worst second of each interval, here and below.',
    quantiles('publish_latency', ofProducers, 'latency', 'open'), quantiles('publish_time', ofProducers, 'time', 'open')))
  .withPanel(latencies('End-to-end latency', 'Due to handed over to the script: what a user of the pipeline waits. Dashed: sent to received by the client.',
    quantiles('e2e_latency', ofConsumers, 'latency', 'open'), quantiles('e2e_time', ofConsumers, 'time', 'open')))
  .withPanel(lines('End-to-end latency by consumer group: ${quantile:text}', 'Due to handed over. A percentile is there where 10 samples of a second lie beyond it: choose a lower one if there is none.', 'ms', {
    query: `SELECT max("value") FROM "broker_e2e_latency_quantile" WHERE "quantile" = '$quantile' AND ${ofLoop('open')} AND ${ofConsumers}`
      + ' GROUP BY time($__interval), "topic", "consumer_group" fill(none)',
    alias: '$tag_topic: $tag_consumer_group',
  }))
  .withPanel(latencies('Delivery wait', 'Received by the client to handed over to the script: the wait in the client\'s buffer. Where it grows the consumers are too slow, not the broker.',
    quantiles('delivery_wait', ofConsumers, '', 'open')))
  .withPanel(latencies('Request latency', 'Due to the reply received. Dashed: sent to the reply received.',
    quantiles('request_latency', ofProducers, 'latency', 'open'), quantiles('request_time', ofProducers, 'time', 'open')))
  .withPanel(latencies('Failed latency', 'Due to the error, of sends that failed. They are in no other latency.', quantiles('failed_latency', ofProducers, '', 'open')))
  .withPanel(curves('Percentile curves of the whole run: producers', 'Every percentile that at least 10 samples lie beyond. Pushed at the end of the run; choose one run and one topic.',
    curve('publish_latency|publish_time|request_latency|request_time', 'open', ofTopic, '"trend"'), 'trend'))
  .withPanel(curves('Percentile curves of the whole run: consumers', 'For each consumer group; that of all groups together, where there are several, has none. Pushed at the end of the run; choose one run and one topic.',
    curve('e2e_latency|e2e_time|delivery_wait', 'open', ofGroups, '"trend", "consumer_group"'), 'trend', 'consumer_group'))

  .withRow(new RowBuilder('Settling and queues'))
  .withPanel(latencies('Settle time', 'Ack called to confirmed by the broker, where it confirms acks.', quantiles('settle_time', ofConsumers)))
  .withPanel(latencies('Redelivery time', 'Requeued to received again.', quantiles('redelivery_time', ofConsumers)))
  .withPanel(lines('Backlog', 'Messages that a group has not settled, as the broker says.', 'suffix:messages',
    gauge('broker_backlog', ofGroups, '$tag_topic: $tag_consumer_group', ', "topic", "consumer_group"')))
  .withPanel(lines('In flight', 'Messages handed over to the client and not yet done, over all producers.', 'suffix:messages', gauge('broker_in_flight', ofRun, 'in flight')))
  .withPanel(lines('Queue wait', 'Of open-arrival-rate: due to the start of the iteration, of the samples that k6 was given.', 'ms', ...samples('queue_wait', ofScenario)))
  .withPanel(lines('Queue length', 'Of open-arrival-rate: arrivals that are due and not started.', 'suffix:arrivals', gauge('broker_queue_length', ofScenario, '$tag_scenario', ', "scenario"')))

  .withRow(new RowBuilder('The generator'))
  .withPanel(latencies('Schedule lag', 'Due to sent. Where it is not small beside the latencies, they say nothing of the broker.', quantiles('schedule_lag', ofProducers)))
  .withPanel(latencies('Generator lag', 'The part of the schedule lag that is the generator\'s own.', quantiles('generator_lag', ofProducers)))
  .withPanel(lines('CPU', 'The share of its CPUs that the process used. Above 90 % the run is not valid.', 'percentunit', gauge('broker_cpu', ofRun, 'CPU')).max(1))
  .withPanel(lines('VUs', 'That are active.', 'suffix:VUs', gauge('vus', ofRun, 'active'), gauge('vus_max', ofRun, 'initialized')))
  .withPanel(numbers('What else was counted', 'docs/metrics.md says what each is.', ofTopic,
    'unstamped', 'unaccounted', 'foreign', 'sibling', 'earlier', 'routed', 'aliased', 'negative', 'blocked',
    'unanswered', 'stray_replies'))

  .withRow(new RowBuilder('Closed loops: no schedule says when to send, so that waiting does not show'))
  .withPanel(latencies('Publish time, closed loop', 'Sent to confirmed.', quantiles('publish_time', ofProducers, '', 'closed')))
  .withPanel(latencies('End-to-end latency, closed loop', 'Sent to handed over. Dashed: sent to received.',
    quantiles('e2e_latency', ofConsumers, 'latency', 'closed'), quantiles('e2e_time', ofConsumers, 'time', 'closed')))
  .withPanel(latencies('Request and failed latency, closed loop', 'Sent to the reply; sent to the error.',
    quantiles('request_latency', ofProducers, 'request', 'closed'), quantiles('failed_latency', ofProducers, 'failed', 'closed')))
  .withPanel(latencies('Delivery wait, closed loop', 'Received by the client to handed over to the script.', quantiles('delivery_wait', ofConsumers, '', 'closed')))
  .withPanel(curves('Percentile curves, closed loop: producers', 'Sent to confirmed; sent to the reply.',
    curve('publish_time|request_time', 'closed', ofTopic, '"trend"'), 'trend'))
  .withPanel(curves('Percentile curves, closed loop: consumers', 'For each consumer group.',
    curve('e2e_latency|e2e_time|delivery_wait', 'closed', ofGroups, '"trend", "consumer_group"'), 'trend', 'consumer_group'))
  .build();
