// Runs, drivers, topics or consumer groups over one another.
import { DashboardBuilder, DashboardCursorSync, RowBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import { choice, ofConsumers, ofGroups, ofLoop, ofProducers, ofRun, ofTopic, others, perSecond, variables } from './influx';
import type { Loop, Query } from './influx';
import { curves, lines, messagesPerSecond, overview } from './panels';

const by = new Map([['testid', 'runs'], ['driver', 'drivers'], ['topic', 'topics'], ['consumer_group', 'consumer groups']]);

const total = (counter: string, where: string) =>
  `SELECT sum("value") AS "${counter}" FROM "broker_${counter}" WHERE ${where} GROUP BY "$by"`;

const percentile = (trend: string, oneIn: number, name: string, where: string, loop?: Loop) =>
  `SELECT max("value") AS "${name}" FROM "broker_curve" WHERE "trend" = '${trend}' AND "one_in" = '${oneIn}'`
  + `${loop ? ` AND ${ofLoop(loop)}` : ''} AND ${where} GROUP BY "$by"`;

const worst = (trend: string, where: string, loop?: Loop): Query => ({
  query: `SELECT max("value") FROM "broker_${trend}_quantile" WHERE "quantile" = '$quantile'${loop ? ` AND ${ofLoop(loop)}` : ''} AND ${where}`
    + ' GROUP BY time($__interval), "$by" fill(none)',
  alias: '$tag_$by',
});

const curve = (trend: string, loop: Loop, where: string) =>
  `SELECT "value" AS "ms", "$by" AS "run", "consumer_group", "one_in" FROM "broker_curve" WHERE "trend" = '${trend}' AND ${ofLoop(loop)} AND ${where}`;

const whole = 'The percentile curves of the whole runs, one over another, those of consumers for each group. Choose one topic.';
const apart = 'The worst second of each interval; a percentile is there where 10 samples of the second lie beyond it. Each run stands at its own time: runs that were made one after the other are not laid over one another here, but in the curves and the table.';

const dashboard = new DashboardBuilder('xk6-broker: compare').uid('xk6-broker-compare').tags(['xk6-broker']).editable()
  .description('Runs, drivers, topics or consumer groups over one another. Give runs names: k6 run --tag testid=NAME.')
  .time({ from: 'now-6h', to: 'now' }).tooltip(DashboardCursorSync.Crosshair).link(others)
  .withVariable(choice('by', 'compare', by, 'testid'));

variables(true).forEach((variable) => dashboard.withVariable(variable));

export const compare = dashboard
  .withPanel(overview('Overview', 'Where several runs fall into one row, counts are sums and percentiles those of the worst. Latencies are those from when a message was due.',
    total('sent', ofProducers), total('confirmed', ofProducers), total('received', ofConsumers), total('drained', ofGroups), total('lost', ofGroups),
    total('duplicated', ofGroups), total('redelivered', ofGroups),
    percentile('publish_latency', 2, 'publish p50', ofTopic, 'open'), percentile('publish_latency', 100, 'publish p99', ofTopic, 'open'),
    percentile('e2e_latency', 2, 'end-to-end p50', ofGroups, 'open'), percentile('e2e_latency', 100, 'end-to-end p99', ofGroups, 'open'),
    percentile('delivery_wait', 100, 'delivery wait p99', ofGroups, 'open'), percentile('request_latency', 100, 'request p99', ofTopic, 'open'),
    percentile('schedule_lag', 100, 'schedule lag p99', ofTopic)))
  .withPanel(curves('Publish latency', `Due to confirmed. ${whole}`, curve('publish_latency', 'open', ofTopic), 'run'))
  .withPanel(curves('End-to-end latency', `Due to handed over. ${whole}`, curve('e2e_latency', 'open', ofGroups), 'run', 'consumer_group'))
  .withPanel(lines('Publish latency: ${quantile:text}', apart, 'ms', worst('publish_latency', ofProducers, 'open')))
  .withPanel(lines('End-to-end latency: ${quantile:text}', apart, 'ms', worst('e2e_latency', ofConsumers, 'open')))
  .withPanel(lines('Received', 'Each run stands at its own time.', messagesPerSecond, { query: perSecond('received', ofConsumers, '"$by"'), alias: '$tag_$by' }))
  .withPanel(lines('Schedule lag: ${quantile:text}', 'The generator\'s own lateness: a comparison is fair where it is small in all runs.', 'ms', worst('schedule_lag', ofProducers)))
  .withPanel(overview('Verdicts', 'Whether each run can be believed.',
    `SELECT min("value") AS "valid" FROM "broker_valid" WHERE ${ofRun} GROUP BY "testid"`).height(5))

  .withRow(new RowBuilder('Closed loops: no schedule says when to send, so that waiting does not show'))
  .withPanel(overview('Overview, closed loop', 'Latencies from when a message was sent.',
    percentile('publish_time', 2, 'publish p50', ofTopic, 'closed'), percentile('publish_time', 100, 'publish p99', ofTopic, 'closed'),
    percentile('e2e_latency', 2, 'end-to-end p50', ofGroups, 'closed'), percentile('e2e_latency', 100, 'end-to-end p99', ofGroups, 'closed')))
  .withPanel(curves('Publish time, closed loop', `Sent to confirmed. ${whole}`, curve('publish_time', 'closed', ofTopic), 'run'))
  .withPanel(curves('End-to-end latency, closed loop', `Sent to handed over. ${whole}`, curve('e2e_latency', 'closed', ofGroups), 'run', 'consumer_group'))
  .build();
