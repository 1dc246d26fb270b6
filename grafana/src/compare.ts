// Runs, drivers or topics over one another.
import { CustomVariableBuilder, DashboardBuilder, DashboardCursorSync } from '@grafana/grafana-foundation-sdk/dashboard';
import { ofRun, ofTopic, Query, tag } from './influx';
import { curves, lines, overview } from './panels';

const total = (counter: string) => `SELECT sum("value") AS "${counter}" FROM "broker_${counter}" WHERE ${ofTopic} GROUP BY "$by"`;

const percentile = (trend: string, oneIn: number, name: string) =>
  `SELECT max("value") AS "${name}" FROM "broker_curve" WHERE "trend" = '${trend}' AND "one_in" = '${oneIn}' AND ${ofTopic} GROUP BY "$by"`;

const worst = (trend: string): Query => ({
  query: `SELECT max("value") FROM "broker_${trend}_quantile" WHERE "quantile" = '0.99' AND ${ofTopic} GROUP BY time($__interval), "$by" fill(none)`,
  alias: '$tag_$by',
});

const curve = (trend: string) =>
  `SELECT "value" AS "ms", "$by" AS "run", "one_in" FROM "broker_curve" WHERE "trend" = '${trend}' AND ${ofTopic}`;

export const compare = new DashboardBuilder('xk6-broker: compare').uid('xk6-broker-compare').tags(['xk6-broker']).editable()
  .description('Runs, drivers or topics over one another. Give runs names: k6 run --tag testid=NAME.')
  .time({ from: 'now-6h', to: 'now' }).tooltip(DashboardCursorSync.Crosshair)
  .withVariable(new CustomVariableBuilder('by').label('compare').values('testid,driver,topic')
    .current({ text: 'testid', value: 'testid' })
    .options(['testid', 'driver', 'topic'].map((value) => ({ text: value, value, selected: value === 'testid' }))))
  .withVariable(tag('testid', 'runs', '', true))
  .withVariable(tag('driver', 'drivers', ' WHERE "testid" =~ /^$testid$/', true))
  .withVariable(tag('topic', 'topics', ' WHERE "testid" =~ /^$testid$/ AND "driver" =~ /^$driver$/', true))

  .withPanel(overview('Overview', 'Where several runs fall into one row, counts are sums and percentiles those of the worst.',
    total('sent'), total('confirmed'), total('received'), total('lost'), total('duplicated'), total('redelivered'),
    percentile('publish_latency', 2, 'publish p50'), percentile('publish_latency', 100, 'publish p99'),
    percentile('e2e_latency', 2, 'end-to-end p50'), percentile('e2e_latency', 100, 'end-to-end p99'),
    percentile('schedule_lag', 100, 'schedule lag p99')))
  .withPanel(curves('Publish latency', 'Due to confirmed. The percentile curves of the whole runs, one over another.', curve('publish_latency')))
  .withPanel(curves('End-to-end latency', 'Due to received. The percentile curves of the whole runs, one over another.', curve('e2e_latency')))
  .withPanel(lines('Publish latency p99', 'The worst second of each interval, at the time it was run.', 'ms', worst('publish_latency')))
  .withPanel(lines('End-to-end latency p99', 'The worst second of each interval, at the time it was run.', 'ms', worst('e2e_latency')))
  .withPanel(lines('Received', 'Messages per second.', 'cps', {
    query: `SELECT sum("value") * 1000 / $__interval_ms FROM "broker_received" WHERE ${ofTopic} GROUP BY time($__interval), "$by" fill(none)`,
    alias: '$tag_$by',
  }))
  .withPanel(lines('Schedule lag p99', 'The generator\'s own lateness: a comparison is fair where it is small in all runs.', 'ms', worst('schedule_lag')))
  .withPanel(overview('Verdicts', 'Whether each run can be believed.',
    `SELECT min("value") AS "valid" FROM "broker_valid" WHERE ${ofRun} GROUP BY "testid"`).height(5))
  .build();
