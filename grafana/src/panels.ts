// The kinds of panels that the dashboards are made of.
import * as common from '@grafana/grafana-foundation-sdk/common';
import { FieldColorBuilder, FieldColorModeId, MappingType, ThresholdsConfigBuilder, ThresholdsMode } from '@grafana/grafana-foundation-sdk/dashboard';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import * as table from '@grafana/grafana-foundation-sdk/table';
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';
import * as xychart from '@grafana/grafana-foundation-sdk/xychart';
import { Query, source, targets } from './influx';

const legend = () => new common.VizLegendOptionsBuilder().displayMode(common.LegendDisplayMode.List)
  .placement(common.LegendPlacement.Bottom).showLegend(true);

export function lines(title: string, description: string, unit: string, ...queries: Query[]) {
  return new timeseries.PanelBuilder().title(title).description(description).datasource(source).unit(unit)
    .interval('2s').min(0).height(8).span(12).targets(targets(...queries))
    .drawStyle(common.GraphDrawStyle.Line).lineWidth(1).fillOpacity(0).showPoints(common.VisibilityMode.Auto)
    .spanNulls(5000).legend(legend())
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi).sort(common.SortOrder.Descending));
}

/** Latencies over time: what is uncorrected is dashed. */
export function latencies(title: string, description: string, ...queries: Query[]) {
  return lines(title, description, 'ms', ...queries)
    .overrideByRegexp('/time/', [{ id: 'custom.lineStyle', value: { fill: 'dash', dash: [6, 6] } }]);
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

export const verdicts = [{
  type: MappingType.ValueToText as const,
  options: { 0: { text: 'NOT VALID', color: 'red', index: 0 }, 1: { text: 'valid', color: 'green', index: 1 } },
}];

export function verdict(query: string, width: number) {
  return number('Verdict', 'Whether the numbers of the run can be believed. It comes at the end; k6 prints why.', query, width)
    .noValue('not yet').mappings(verdicts);
}

/**
 * Percentile curves of whole runs, on the axis of the HDR histograms: 10 is p90, 100 is p99. The query gives the columns ms, run and
 * one_in; each run becomes a line.
 */
export function curves(title: string, description: string, query: string) {
  return new xychart.PanelBuilder().title(title).description(description).datasource(source).unit('ms')
    .height(10).span(12).targets(targets({ query, table: true }))
    .withTransformation({ id: 'filterFieldsByName', options: { include: { names: ['ms', 'run', 'one_in'] } } })
    .withTransformation({ id: 'convertFieldType', options: { conversions: [{ targetField: 'one_in', destinationType: 'number' }], fields: {} } })
    .withTransformation({ id: 'sortBy', options: { fields: {}, sort: [{ field: 'one_in' }] } })
    .withTransformation({ id: 'organize', options: { excludeByName: {}, indexByName: { one_in: 0, ms: 1, run: 2 }, renameByName: {} } })
    .withTransformation({ id: 'partitionByValues', options: { fields: ['run'], keepFields: false, naming: { asLabels: true } } })
    .mapping(xychart.SeriesMapping.Auto).show(xychart.XYShowMode.Lines).lineWidth(2).pointSize({ fixed: 4 })
    .scaleDistribution(new common.ScaleDistributionConfigBuilder().type(common.ScaleDistribution.Log).log(10))
    .overrideByName('one_in', [
      { id: 'unit', value: 'none' },
      { id: 'custom.axisLabel', value: 'one in … is greater (10 = p90, 100 = p99, 1000 = p99.9)' },
    ])
    .overrideByRegexp('/time/', [{ id: 'custom.lineStyle', value: { fill: 'dash', dash: [6, 6] } }])
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
