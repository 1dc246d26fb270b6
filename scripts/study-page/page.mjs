// Writes a page of docs/evidence/studies from a study's folder, with its charts as SVG beside it:
//
//   scripts/study-page/page.mjs NAME FOLDER [OUT]
//
// It keeps the conclusions of an existing page.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as echarts from 'echarts';

const [name, folder, out = new URL('../../docs/evidence/studies', import.meta.url).pathname] = process.argv.slice(2);
if (!folder) {
  console.error('usage: scripts/study-page/page.mjs NAME FOLDER [OUT]');
  process.exit(2);
}
const conclusions = '## What agrees, and what does not';
const colours = ['#1f77b4', '#ff7f0e', '#2ca02c', '#d62728', '#9467bd', '#8c564b', '#e377c2', '#7f7f7f'];
const study = JSON.parse(readFileSync(join(folder, 'study.json'), 'utf8'));
study.Tables.forEach((table) => { table.Rows ??= []; }); // of a test that has not run yet

// columns returns the columns of numbers: their title, the published and the measured values, and the multiples of the base.
function columns({ Heads, Rows }) {
  const all = [];
  const numbers = (i) => Rows.map((row) => Number.parseFloat(row[i].Raw || row[i].Text));
  Heads.forEach((head, i) => {
    if (i === 0 || head === 'confirmed means') return;
    const last = all.at(-1);
    if (head === '× base, published') last.publishedRatio = numbers(i);
    else if (head === '× base') last.ratio = numbers(i);
    else if (!head.endsWith(', published')) all.push({ title: head, values: numbers(i), texts: Rows.map((row) => row[i].Text) });
  });
  return all;
}

// A duration is shown in milliseconds; its raw value is in nanoseconds.
const isDuration = (column) => column.texts.some((text) => /^[\d.]+(µs|ms|s|m|ns)/.test(text));
const known = (values) => values.filter((v) => Number.isFinite(v) && v > 0);
// shown leaves a gap for a value that is not known. A row of a run that is not valid keeps its ✗.
const shown = (v) => (Number.isFinite(v) && v > 0 ? v : '-');

// cartesian draws lines or bars, many bars horizontally. A bar has no length on a logarithmic axis, so it is a point there.
function cartesian(title, kind, ticks, unit, series) {
  const values = known(series.flatMap((each) => each.data));
  const isLog = Math.max(...values) > 30 * Math.min(...values);
  const least = 10 ** Math.floor(Math.log10(Math.min(...values)));
  const horizontal = kind === 'bar' && ticks.length > 5;
  const categories = { type: 'category', data: ticks, axisLabel: { interval: 0, width: horizontal ? 260 : 110, overflow: 'break', fontSize: 11 }, inverse: horizontal };
  const numbers = { type: isLog ? 'log' : 'value', ...(isLog && { min: least, startValue: least }), name: unit, nameTextStyle: { align: 'left' } };
  return {
    title: { text: title, left: 'center', textStyle: { fontSize: 14 } },
    legend: { top: 32, type: 'plain' },
    grid: { left: 40, right: 70, top: 80 + 22 * Math.floor(series.length / 4), bottom: 20, containLabel: true },
    xAxis: horizontal ? numbers : categories,
    yAxis: horizontal ? categories : numbers,
    series: series.map((each) => ({ type: kind === 'bar' && isLog ? 'scatter' : kind, symbolSize: 7, ...each, data: each.data.map(shown) })),
  };
}

// heat shows rows named "ROW × COLUMN".
function heat(title, rows, column) {
  const pairs = rows.map((row) => row[0].Text.split(' ✗')[0].split(' × ').map(Number));
  const [ys, xs] = [0, 1].map((i) => [...new Set(pairs.map((pair) => pair[i]))].sort((a, b) => a - b));
  const data = pairs.map(([y, x], i) => [xs.indexOf(x), ys.indexOf(y), shown(Math.round(column.values[i]))]);
  return {
    title: { text: title, left: 'center', textStyle: { fontSize: 15 } },
    grid: { left: 70, right: 90, top: 50, bottom: 50 },
    xAxis: { type: 'category', data: xs, name: 'requests at a time', nameLocation: 'middle', nameGap: 30 },
    yAxis: { type: 'category', data: ys, name: 'in a request' },
    visualMap: { min: 0, max: Math.max(...known(column.values)), right: 5, top: 'middle', dimension: 2, inRange: { color: ['#f7fbff', '#6baed6', '#08306b'] } },
    series: [{ type: 'heatmap', data, label: { show: true, fontSize: 9, formatter: ({ value, dataIndex }) => `${value[2] >= 1000 ? `${Math.round(value[2] / 1000)}k` : value[2]}${column.texts[dataIndex].endsWith('?') ? '?' : ''}` } }],
  };
}

// charts returns the charts of a table: a heat map of pairs; multiples of the base; a curve for each row with several columns of one unit,
// dashed for the columns "sent ..."; or bars.
function charts(table) {
  const all = columns(table).filter((column) => known(column.values).length > 0);
  const rows = table.Rows.map((row) => row[0].Text.replace(/ ✗.*/, ' ✗'));
  if (all.length === 0) return [];
  const pairs = rows.map((row) => row.match(/^(\d+) × (\d+)( ✗)?$/) ?? []);
  if (new Set(pairs.map((pair) => pair[1])).size > 1 && new Set(pairs.map((pair) => pair[2])).size > 1) return [heat(`${table.Title}: ${all[0].title}`, table.Rows, all[0])];
  const percentiles = all.filter((column) => /^(p[\d.]+|tenth \d+)$/.test(column.title));
  const made = [];
  if (rows.length > 1) {
    all.filter((column) => column.ratio).forEach((column) => {
      const series = [];
      if (known(column.publishedRatio).length > 1) series.push({ name: 'published', data: column.publishedRatio });
      series.push({ name: 'measured', data: column.ratio });
      made.push(cartesian(`${table.Title}: ${column.title} as a multiple of the base`, 'bar', rows, '× base', series));
    });
  }
  if (percentiles.length > 1 && rows.length > 0) {
    const scale = isDuration(percentiles[0]) ? 1e-6 : 1;
    const unit = scale === 1 ? '/s' : 'ms';
    if (rows.length > colours.length || rows.length > 1 && percentiles.length === 2) {
      made.push(cartesian(table.Title, 'bar', rows, unit, percentiles.map((column) => ({ name: column.title, data: column.values.map((v) => v * scale) }))));
    } else if (percentiles.length > 2) {
      const curves = (prefix, style) => rows.map((row, i) => ({ name: row, ...style, data: percentiles.map(({ title }) => all.find((column) => column.title === prefix + title)?.values[i] * scale) }));
      const sent = all.some((column) => column.title.startsWith('sent p')) ? curves('sent ', { lineStyle: { type: 'dashed' }, symbol: 'emptyCircle' }) : [];
      made.push(cartesian(table.Title + (sent.length > 0 ? ' (dashed: from when it was sent)' : ''), 'line', percentiles.map((column) => column.title), unit, [...curves('', { symbol: 'circle' }), ...sent]));
    }
  }
  if (made.length === 0 && rows.length > 1 && all[0].texts.some((each) => each.includes('/s'))) made.push(cartesian(`${table.Title}: ${all[0].title}`, 'bar', rows, '/s', [{ name: all[0].title, data: all[0].values }]));
  return made;
}

function svg(option, wide) {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: wide ? 900 : 760, height: wide ? 520 : 380 });
  chart.setOption({ animation: false, backgroundColor: '#fff', color: colours, textStyle: { fontFamily: 'sans-serif' }, ...option });
  const text = chart.renderToSVGString();
  chart.dispose();
  return `${text}\n`;
}

// overview shows the most of each system in a study of many, grouped by the meaning of a confirmation.
function overview(tables) {
  const systems = tables.filter((table) => table.Rows.length > 1 && table.Heads.includes('confirmed means')).flatMap((table) => {
    const first = columns(table)[0];
    if (!first?.texts.some((text) => text.includes('/s'))) return [];
    const most = Math.max(...known(first.values));
    if (!Number.isFinite(most)) return [];
    const row = table.Rows[first.values.indexOf(most)].map((cell) => cell.Text);
    return [{ title: table.Title, proof: row.at(-1), cell: row[0].split(' ✗')[0], most, text: first.texts[first.values.indexOf(most)], column: first.title }];
  });
  if (systems.length < 4 || systems.every((each) => each.proof === systems[0].proof)) return '';
  systems.sort((a, b) => a.proof.localeCompare(b.proof) || b.most - a.most);
  const file = `${name}-0-1.svg`;
  const option = cartesian('The most of each system', 'bar', systems.map((each) => `${each.title}${each.text.endsWith('?') ? ' ?' : ''} (${each.proof.split(':')[0]})`), '/s', [{ name: systems[0].column, data: systems.map((each) => each.most) }]);
  writeFileSync(join(out, file), svg(option, true));
  const rows = systems.map((each) => `| ${each.proof} | ${each.title} | ${each.text} | ${each.cell} |`);
  return `\n## Overview, by what a confirmation means\n\n![The most of each system](${file})\n\n| confirmed means | system | the most ${systems[0].column} | by |\n|---|---|---:|---|\n${rows.join('\n')}\n`;
}

const stale = new RegExp(`^${name}-\\d+-\\d+\\.svg$`);
readdirSync(out).filter((file) => stale.test(file)).forEach((file) => rmSync(join(out, file)));
const command = (line) => {
  const [scale, repeat] = ['scale', 'repeat'].map((flag) => line.match(new RegExp(`--${flag} (\\S+)`))?.[1]);
  if (repeat) return `    SCALE=${scale ?? 1} scripts/study ${name} --repeat ${repeat}`;
  return `    make study STUDY=${name}${scale ? ` SCALE=${scale}` : ''}`;
};
let text = readFileSync(join(folder, 'tables.md'), 'utf8').split('\n## Every run')[0].replace(/^k6 x broker study.*$/m, command);
text = text.replace(/^(Compare ratios within the study.*)$/m, '$1 [The codes](../../verdicts.md), [what a confirmation proves](../../brokers.md#what-does-confirmed-prove).');
study.Tables.filter((table) => table.Rows.length === 0).forEach(({ Title }) => { // of a broker that is not here
  const [before, after] = text.split(`\n## ${Title}\n`);
  text = before + (after.includes('\n## ') ? after.slice(after.indexOf('\n## ')) : '');
});
study.Tables.slice(0, -1).forEach((table, i) => {
  const images = charts(table).map((option, k) => {
    const file = `${name}-${i + 1}-${k + 1}.svg`;
    writeFileSync(join(out, file), svg(option, option.visualMap));
    return `![${option.title.text.replaceAll('"', '')}](${file})\n\n`;
  });
  text = text.replace(`\n## ${table.Title}\n`, () => `\n## ${table.Title}\n\n${images.join('')}`.trimEnd() + '\n');
});
text = text.replace('\n## ', () => `${overview(study.Tables.slice(0, -1))}\n## `);
const page = join(out, `${name}.md`);
const before = existsSync(page) ? readFileSync(page, 'utf8').split(`\n${conclusions}\n`)[1] : undefined;
writeFileSync(page, `${text.trimEnd()}\n\n${conclusions}\n\n${(before ?? '').trim()}\n`);
process.exit(0);
