// One run, from its start to its end.
import { DashboardBuilder, DashboardCursorSync, RowBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import { annotation, ofRun, ofTopic, Query, tag } from './influx';
import { curves, fault, latencies, lines, number, verdict } from './panels';

const sum = (counter: string) => `SELECT sum("value") FROM "broker_${counter}" WHERE ${ofTopic}`;

const rate = (counter: string): Query => ({
  query: `SELECT sum("value") * 1000 / $__interval_ms FROM "broker_${counter}" WHERE ${ofTopic} GROUP BY time($__interval) fill(none)`,
  alias: counter,
});

const quantiles = (trend: string, alias: string, which = '0.5|0.99|0.999|1'): Query => ({
  query: `SELECT max("value") FROM "broker_${trend}_quantile" WHERE "quantile" =~ /^(${which})$/ AND ${ofTopic}`
    + ' GROUP BY time($__interval), "quantile" fill(none)',
  alias: `${alias} $tag_quantile`,
});

export const run = new DashboardBuilder('xk6-broker: run').uid('xk6-broker-run').tags(['xk6-broker']).editable()
  .description('One run of a load test of a message broker. Choose it by the tag testid (k6 run --tag testid=NAME), or by time.')
  .time({ from: 'now-15m', to: 'now' }).refresh('5s').tooltip(DashboardCursorSync.Crosshair)
  .withVariable(tag('testid', 'run', '', false))
  .withVariable(tag('driver', 'driver', ' WHERE "testid" =~ /^$testid$/', true))
  .withVariable(tag('topic', 'topic', ' WHERE "testid" =~ /^$testid$/ AND "driver" =~ /^$driver$/', true))
  .annotation(annotation('start, end and marks', 'blue', `SELECT "value", "mark" FROM "broker_marks" WHERE ${ofRun}`, 'mark'))
  .annotation(annotation('disconnected', 'red',
    `SELECT "value", "kind" FROM "broker_errors" WHERE "kind" = 'disconnected' AND ${ofTopic} LIMIT 100`, 'kind'))

  .withPanel(verdict(`SELECT last("value") FROM "broker_valid" WHERE ${ofRun}`, 4))
  .withPanel(number('due', 'Arrivals whose time has come.', sum('due'), 5))
  .withPanel(number('sent', 'Handed to the client library.', sum('sent'), 5))
  .withPanel(number('confirmed', 'Confirmed by the broker, in the driver\'s sense.', sum('confirmed'), 5))
  .withPanel(number('received', 'Received, copies included, by all groups.', sum('received'), 5))
  .withPanel(fault('lost', 'Confirmed, not received, and the broker has them no more. Known at the end.', sum('lost'), 4))
  .withPanel(fault('undelivered', 'Confirmed, not received, still at the broker. Known at the end.', sum('undelivered'), 4))
  .withPanel(fault('duplicated', 'Copies of messages that were settled already.', sum('duplicated'), 4))
  .withPanel(fault('reordered', 'Overtaken by a later message of the same producer and partition, at the same consumer.', sum('reordered'), 4))
  .withPanel(fault('corrupted', 'Stamp or body damaged. Known at the end.', sum('corrupted'), 4))
  .withPanel(number('redelivered', 'Copies that the broker delivered again.', sum('redelivered'), 4))

  .withRow(new RowBuilder('Load'))
  .withPanel(lines('Rates', 'Messages per second: due by the schedule, sent, confirmed and received.', 'cps',
    rate('due'), rate('sent'), rate('confirmed'), rate('received')))
  .withPanel(lines('Errors', 'Errors per second, by what failed and how.', 'cps', {
    query: `SELECT sum("value") * 1000 / $__interval_ms FROM "broker_errors" WHERE ${ofTopic} GROUP BY time($__interval), "op", "kind" fill(0)`,
    alias: '$tag_op: $tag_kind',
  }))

  .withRow(new RowBuilder('Latency'))
  .withPanel(latencies('Publish latency', 'Due to confirmed: what a caller waits. Dashed: sent to confirmed, which leaves out what queued behind a stall. The worst second of each interval.',
    quantiles('publish_latency', 'latency'), quantiles('publish_time', 'time')))
  .withPanel(latencies('End-to-end latency', 'Due to received: what a user of the pipeline waits. Dashed: sent to received.',
    quantiles('e2e_latency', 'latency'), quantiles('e2e_time', 'time')))
  .withPanel(curves('Percentile curve of the whole run', 'Every percentile that at least 10 samples lie beyond. Pushed at the end of the run; choose one run and one topic.',
    `SELECT "value" AS "ms", "trend" AS "run", "one_in" FROM "broker_curve" WHERE "trend" =~ /^(publish|e2e|request)_/ AND ${ofTopic}`))
  .withPanel(lines('Schedule lag', 'Due to sent: the generator\'s own lateness. Where it is not small beside the latencies, they say nothing of the broker.', 'ms',
    quantiles('schedule_lag', 'lag')).height(10))

  .withRow(new RowBuilder('Queues'))
  .withPanel(lines('Backlog', 'Messages that a group has not settled, as the broker says.', 'short', {
    query: `SELECT max("value") FROM "broker_backlog" WHERE ${ofTopic} GROUP BY time($__interval), "topic", "consumer_group" fill(none)`,
    alias: '$tag_topic: $tag_consumer_group',
  }))
  .withPanel(lines('In flight', 'Messages handed over and not yet done, over all producers.', 'short', {
    query: `SELECT max("value") FROM "broker_in_flight" WHERE ${ofRun} GROUP BY time($__interval) fill(none)`,
    alias: 'in flight',
  }))
  .build();
