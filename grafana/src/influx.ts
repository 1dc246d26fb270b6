// Queries against InfluxDB 1.x, which the SDK has no builder for.
import type { AnnotationQuery, DataSourceRef, VariableModel } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  CustomVariableBuilder, DashboardLinkBuilder, DashboardLinkType, DatasourceVariableBuilder, QueryVariableBuilder, VariableRefresh, VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';

/** Whatever InfluxDB the variable says: the default one, unless somebody chooses another. */
export const source: DataSourceRef = { type: 'influxdb', uid: '${source}' };

// A condition on a tag that some series have not lets these through while the variable is All, and only then. So each query asks for the
// tags that its metric has: what is known of the whole run has no scenario, what producers measure has no consumer group.
export const ofRun = '"testid" =~ /^$testid$/ AND $timeFilter';
export const ofScenario = `"scenario" =~ /^$scenario$/ AND ${ofRun}`;
export const ofTopic = `"driver" =~ /^$driver$/ AND "topic" =~ /^$topic$/ AND ${ofRun}`;
export const ofProducers = `"scenario" =~ /^$scenario$/ AND ${ofTopic}`;
export const ofGroups = `"consumer_group" =~ /^$group$/ AND ${ofTopic}`;
export const ofConsumers = `"scenario" =~ /^$scenario$/ AND ${ofGroups}`;

/** The two loops are never drawn together: in a closed one due is sent, and waiting does not show. */
export type Loop = 'open' | 'closed';
export const ofLoop = (loop: Loop) => `"loop" = '${loop}'`;

export type Query = { query: string; alias?: string; table?: boolean };

/** The targets of a panel, by the letters that Grafana gives them. */
export function targets(...queries: Query[]): Builder<Dataquery>[] {
  return queries.map(({ query, alias, table }, i) => ({
    build() {
      const target = {
        refId: String.fromCharCode('A'.charCodeAt(0) + i), datasource: source, rawQuery: true, query,
        resultFormat: table ? 'table' : 'time_series', ...(alias !== undefined && { alias }),
      };
      return target as unknown as Dataquery;
    },
  }));
}

/** A counter per second of each interval. */
export function perSecond(counter: string, where: string, by = ''): string {
  const groups = ['time($__interval)', ...(by ? [by] : [])].join(', ');
  return `SELECT sum("value") * 1000 / $__interval_ms FROM "broker_${counter}" WHERE ${where} GROUP BY ${groups} fill(none)`;
}

/** A variable with the values of a tag; "All" also finds what was stored without that tag. */
function tag(name: string, label: string, key: string, among: string, multi: boolean): Builder<VariableModel> {
  return new QueryVariableBuilder(name).label(label).datasource(source)
    .query(`SHOW TAG VALUES FROM /^broker_(sent|received)$/ WITH KEY = "${key}"${among}`)
    .refresh(VariableRefresh.OnTimeRangeChanged).sort(VariableSort.AlphabeticalDesc)
    .multi(multi).includeAll(true).allValue('.*').current({ text: 'All', value: '$__all' });
}

/** A variable with one of a few values, each shown by its name. */
export function choice(name: string, label: string, values: Map<string, string>, preset: string): Builder<VariableModel> {
  return new CustomVariableBuilder(name).label(label).values([...values].map(([value, text]) => `${text} : ${value}`).join(','))
    .current({ text: values.get(preset)!, value: preset })
    .options([...values].map(([value, text]) => ({ text, value, selected: value === preset })));
}

/** The quantiles that are stored of each second, and how people call them. A percentile is there where 10 samples of the second lie beyond it. */
export const quantileNames = new Map([['0.5', 'p50'], ['0.9', 'p90'], ['0.99', 'p99'], ['0.999', 'p99.9'], ['1', 'max']]);

/** The variables of every dashboard, under the same names in all, so that links take them along. */
export function variables(severalRuns: boolean): Builder<VariableModel>[] {
  const run = ' WHERE "testid" =~ /^$testid$/', topic = `${run} AND "driver" =~ /^$driver$/ AND "topic" =~ /^$topic$/`;
  return [
    new DatasourceVariableBuilder('source').label('data source').type('influxdb'),
    tag('testid', severalRuns ? 'runs' : 'run', 'testid', '', severalRuns),
    tag('driver', 'driver', 'driver', run, true),
    tag('topic', 'topic', 'topic', `${run} AND "driver" =~ /^$driver$/`, true),
    tag('scenario', 'scenario', 'scenario', topic, true),
    tag('group', 'consumer group', 'consumer_group', topic, true),
    choice('quantile', 'quantile', quantileNames, '0.99'),
  ];
}

/** Leads to the other dashboards of this kind, with the time range and the variables as they are. */
export const others = new DashboardLinkBuilder('xk6-broker').type(DashboardLinkType.Dashboards).tags(['xk6-broker'])
  .icon('external link').keepTime(true).includeVars(true);

/** Annotations: one for each row, with a column for its text. */
export function annotation(name: string, color: string, query: string, text: string): Builder<AnnotationQuery> {
  return {
    build() {
      const target = {
        limit: 100, matchAny: false, tags: [], type: 'dashboard',
        // As the editor of the data source leaves it.
        refId: 'Anno', name, query, queryType: 'tags', rawQuery: true, fromAnnotations: true, textEditor: true,
        textColumn: text, tagsColumn: '', titleColumn: '', timeEndColumn: '',
      };
      return { name, datasource: source, enable: true, iconColor: color, target };
    },
  };
}
