// The kinds of panels that the dashboards are made of.
import * as common from '@grafana/grafana-foundation-sdk/common';
import { FieldColorBuilder, FieldColorModeId, MappingType, ThresholdsConfigBuilder, ThresholdsMode } from '@grafana/grafana-foundation-sdk/dashboard';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import * as table from '@grafana/grafana-foundation-sdk/table';
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';
import * as xychart from '@grafana/grafana-foundation-sdk/xychart';
import { ofLoop, perSecond, quantileNames, source, targets } from './influx';
import type { Loop, Query } from './influx';

export const messagesPerSecond = 'suffix:messages/s';

const legend = () => new common.VizLegendOptionsBuilder().displayMode(common.LegendDisplayMode.List)
  .placement(common.LegendPlacement.Bottom).showLegend(true);

export function lines(title: string, description: string, unit: string, ...queries: Query[]) {
  return new timeseries.PanelBuilder().title(title).description(description).datasource(source).unit(unit)
    .interval('2s').min(0).height(8).span(12).targets(targets(...queries))
    .drawStyle(common.GraphDrawStyle.Line).lineWidth(1).fillOpacity(0).showPoints(common.VisibilityMode.Auto)
    .spanNulls(5000).legend(legend())
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi).sort(common.SortOrder.Descending));
}

const dashed = [{ id: 'custom.lineStyle', value: { fill: 'dash', dash: [6, 6] } }];

/** A trend's quantiles: the worst second of each interval. A name tells several trends of a panel apart. */
export function quantiles(trend: string, where: string, name = '', loop?: Loop): Query {
  const which = [...quantileNames.keys()].join('|').replaceAll('.', '\\.');
  return {
    query: `SELECT max("value") FROM "broker_${trend}_quantile" WHERE "quantile" =~ /^(${which})$/ AND ${loop ? `${ofLoop(loop)} AND ` : ''}${where}`
      + ' GROUP BY time($__interval), "quantile" fill(none)',
    alias: `${name} $tag_quantile`.trim(),
  };
}

/** Latencies over time: what is uncorrected is dashed. */
export function latencies(title: string, description: string, ...queries: Query[]) {
  let panel = lines(title, description, 'ms', ...queries).overrideByRegexp('/time/', dashed);
  for (const [quantile, name] of quantileNames) {
    const regex = `/(^| )${quantile.replace('.', '\\.')}$/`;
    panel = panel.withTransformation({ id: 'renameByRegex', options: { regex, renamePattern: `$1${name}` } });
  }
  return panel;
}

/** Counters over time, each as a line of its name. */
export function rates(title: string, description: string, where: string, ...counters: string[]) {
  return lines(title, description, messagesPerSecond, ...counters.map((counter) => ({ query: perSecond(counter, where), alias: counter })));
}

export function number(title: string, description: string, query: string, width: number) {
  return new stat.PanelBuilder().title(title).description(description).datasource(source).height(3).span(width)
    .targets(targets({ query, alias: title })).unit('locale').noValue('–')
    .graphMode(common.BigValueGraphMode.None).colorMode(common.BigValueColorMode.Value)
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Fixed).fixedColor('text'));
}

/** A number that should be zero. */
export function fault(title: string, description: string, query: string, width: number) {
  return number(title, description, query, width)
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Thresholds))
    .thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute)
      .steps([{ value: null as unknown as number, color: 'green' }, { value: 1, color: 'red' }]));
}

/** Several counters, each where there is something to count. */
export function numbers(title: string, description: string, where: string, ...counters: string[]) {
  return new stat.PanelBuilder().title(title).description(description).datasource(source).height(4).span(24)
    .targets(targets({ query: `SELECT sum("value") FROM /^broker_(${counters.join('|')})$/ WHERE ${where}`, alias: '$m' }))
    .withTransformation({ id: 'renameByRegex', options: { regex: '/^broker_(.*)$/', renamePattern: '$1' } })
    .unit('locale').noValue('nothing').textMode(common.BigValueTextMode.ValueAndName)
    .graphMode(common.BigValueGraphMode.None).colorMode(common.BigValueColorMode.None);
}

export const verdicts = [{
  type: MappingType.ValueToText as const,
  options: { 0: { text: 'NOT VALID', color: 'red', index: 0 }, 1: { text: 'valid', color: 'green', index: 1 } },
}];

export function verdict(query: string, width: number) {
  return number('Verdict', 'Whether the numbers of the run can be believed. It comes at the end; k6 prints why.', query, width)
    .noValue('not yet').mappings(verdicts);
}

/**
 * Percentile curves of whole runs, on the axis of the HDR histograms: 10 is p90, 100 is p99. The query gives the columns ms, one_in, and those
 * that tell the lines apart: for each of their values there is one.
 */
export function curves(title: string, description: string, query: string, ...apart: string[]) {
  return new xychart.PanelBuilder().title(title).description(description).datasource(source).unit('ms')
    .height(10).span(12).targets(targets({ query, table: true }))
    .withTransformation({ id: 'filterFieldsByName', options: { include: { names: ['ms', 'one_in', ...apart] } } })
    .withTransformation({ id: 'convertFieldType', options: { conversions: [{ targetField: 'one_in', destinationType: 'number' }], fields: {} } })
    .withTransformation({ id: 'sortBy', options: { fields: {}, sort: [{ field: 'one_in' }] } })
    .withTransformation({
      id: 'organize',
      options: { excludeByName: {}, indexByName: Object.fromEntries(['one_in', 'ms', ...apart].map((name, i) => [name, i])), renameByName: {} },
    })
    .withTransformation({ id: 'partitionByValues', options: { fields: apart, keepFields: false, naming: { asLabels: true } } })
    // ms {consumer_group="workers", trend="e2e_latency"}, which has null for no group
    .withTransformation({ id: 'renameByRegex', options: { regex: '/^(\\w+) {consumer_group="(.*)", \\w+="(.*)"}$/', renamePattern: '$1 $3: $2' } })
    .withTransformation({ id: 'renameByRegex', options: { regex: '/: null$/', renamePattern: '' } })
    .mapping(xychart.SeriesMapping.Auto).show(xychart.XYShowMode.Lines).lineWidth(2).pointSize({ fixed: 4 })
    .scaleDistribution(new common.ScaleDistributionConfigBuilder().type(common.ScaleDistribution.Log).log(10))
    .overrideByName('one_in', [
      { id: 'unit', value: 'none' },
      { id: 'custom.axisLabel', value: 'one in … is greater (10 = p90, 100 = p99, 1000 = p99.9)' },
    ])
    .overrideByRegexp('/time/', dashed)
    .legend(legend()).tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Single));
}

/** One row for each run; each query gives one more column. */
export function overview(title: string, description: string, ...queries: string[]) {
  return new table.PanelBuilder().title(title).description(description).datasource(source).height(8).span(24)
    .targets(targets(...queries.map((query) => ({ query, table: true }))))
    .withTransformation({ id: 'filterFieldsByName', options: { exclude: { names: ['Time'] } } })
    .withTransformation({ id: 'merge', options: {} })
    .overrideByRegexp('/p\\d|max/', [{ id: 'unit', value: 'ms' }])
    .overrideByName('valid', [{ id: 'mappings', value: verdicts }]);
}
