// Queries against InfluxDB 1.x, which the SDK has no builder for.
import type { AnnotationQuery, DataSourceRef, VariableModel } from '@grafana/grafana-foundation-sdk/dashboard';
import { QueryVariableBuilder, VariableRefresh, VariableSort } from '@grafana/grafana-foundation-sdk/dashboard';
import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';

export const source: DataSourceRef = { type: 'influxdb', uid: 'influxdb' };

/** The runs that are chosen; what has no driver and topic, such as the verdict, is found by this alone. */
export const ofRun = '"testid" =~ /^$testid$/ AND $timeFilter';
export const ofTopic = `"driver" =~ /^$driver$/ AND "topic" =~ /^$topic$/ AND ${ofRun}`;

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

/** A variable with the values of a tag; "All" also finds what was stored without that tag. */
export function tag(name: string, label: string, among: string, multi: boolean): Builder<VariableModel> {
  return new QueryVariableBuilder(name).label(label).datasource(source)
    .query(`SHOW TAG VALUES FROM "broker_sent" WITH KEY = "${name}"${among}`)
    .refresh(VariableRefresh.OnTimeRangeChanged).sort(VariableSort.AlphabeticalDesc)
    .multi(multi).includeAll(true).allValue('.*').current({ text: 'All', value: '$__all' });
}

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
