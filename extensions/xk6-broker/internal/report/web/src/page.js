// Draws the charts that the page carries as JSON into the figures of the same id, in the colours of the present theme.
import uPlot from 'uplot';
import { axisLabel, format, percentile } from './format.js';
import { chartsOf } from './history.js';

const read = (id) => JSON.parse(document.getElementById(id).textContent) ?? [];
const charts = read('charts');
for (const history of read('histories')) {
  charts.push(...chartsOf(history));
  const own = charts.filter(({ id }) => id.startsWith(`${history.id}-`));
  document.getElementById(`${history.id}-charts`).append(...own.map(({ id }) => Object.assign(document.createElement('figure'), { id, className: 'chart' })));
}
for (const cell of document.querySelectorAll('td')) { // thin spaces between the thousands of a count
  if (/^\d{4,}$/.test(cell.textContent)) cell.textContent = cell.textContent.replace(/\B(?=(\d{3})+$)/g, '\u202f');
}
const printing = matchMedia('print');
const dark = matchMedia('(prefers-color-scheme: dark)');
const printWidth = { whole: 660, half: 320 }; // of a page of A4 or letter, in CSS pixels; two charts are side by side, but for the first
const drawn = new Map(); // figure -> { plot, frame, log }
window.drawn = []; // for tests: what is drawn now

const fontSize = () => (printing.matches ? 10 : 12); // of a chart, in CSS pixels
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const faint = (hex) => `${hex}2e`;

function axes(chart, log) {
  const common = { stroke: colour('soft'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line') }, font: `${fontSize()}px system-ui, sans-serif` };
  const x = { ...common };
  if (chart.axis === 'percentile') {
    x.splits = (_, __, min, max) => decades(min, max);
    x.values = (_, splits) => splits.map((v) => (v === null ? '' : percentile(v))); // null: there is no room for it
    x.label = 'percentile';
  } else if (chart.axis === 'setting') {
    x.splits = (plot) => room(plot, chart);
    x.values = (_, splits) => splits.map((v) => chart.ticks[chart.x.indexOf(v)] ?? '');
    x.label = chart.label;
  } else {
    x.values = (_, splits) => splits.map((s) => `${s}`);
    x.label = 'seconds from the start';
  }
  x.size = 34;
  x.labelSize = 18;
  x.labelGap = -2;
  x.labelFont = common.font;
  const y = { ...common, size: 72, splits: log ? (_, __, min, max) => logarithmic(min, max) : undefined, filter: (_, splits) => splits, values: (_, splits) => splits.map((v) => (v === null ? '' : format(v, chart.unit))) };
  return [x, y];
}

// room keeps of the values of a setting those for whose text there is room.
function room(plot, chart) {
  const width = 0.6 * fontSize() * Math.max(...chart.ticks.map((text) => text.length)) + 8;
  let last = -Infinity;
  return chart.x.filter((v) => {
    const at = plot.valToPos(v, 'x');
    if (at - last < width) return false;
    last = at;
    return true;
  });
}

// around leaves room at both sides of the values of a setting.
function around(chart) {
  const [first, last] = [chart.x[0], chart.x.at(-1)];
  if (chart.decades) return [first / 1.2, last * 1.2];
  const by = chart.apart ? 0.5 : Math.max((last - first) * 0.03, first === last ? 1 : 0);
  return [first - by, last + by];
}

function scaleOf(chart) {
  if (chart.axis === 'percentile') return { time: false, distr: 3, range: (_, min, max) => [1, Math.max(10, max)] };
  if (chart.axis === 'setting') return { time: false, distr: chart.decades ? 3 : 1, range: () => around(chart) };
  return { time: false };
}

// reach is the least and the greatest value of the lines that are shown, their bars included.
function reach(plot, chart, min, max) {
  chart.lines.forEach((line, i) => {
    if (!line.low || plot.series[i + 1]?.show === false) return;
    for (const v of [...line.low, ...line.high]) if (v !== null) [min, max] = [Math.min(min ?? v, v), Math.max(max ?? v, v)];
  });
  return [min, max];
}

function decades(min, max) {
  const all = [];
  for (let k = Math.round(Math.log10(min)); 10 ** k <= max * 1.0001; k++) all.push(10 ** k);
  return all;
}

// logarithmic gives the ticks of an axis of values: the decades and, where they are few, what is between.
function logarithmic(min, max) {
  const all = decades(min, max);
  if (all.length > 3) return all;
  return all.flatMap((v) => [v, 2 * v, 5 * v]).filter((v) => v <= max * 1.0001);
}

// positive keeps what a logarithmic axis can show.
const positive = (values) => values.map((v) => (v === null || v > 0 ? v : null));

// range of a logarithmic axis: whole decades around the values.
function decadesAround(min, max) {
  if (!(min > 0)) return [0.01, 1];
  return [10 ** Math.floor(Math.log10(min)), 10 ** Math.ceil(Math.log10(max) + 1e-9)];
}

const upTo = (max) => [0, max > 0 ? max * 1.05 : 1];

// spread writes a value of several repetitions: the median, the least and the greatest.
function spread(line, at, unit) {
  if (!line.low || line.low[at] === line.high[at]) return undefined;
  return `${format(line.values[at], unit)} (${format(line.low[at], unit)}…${format(line.high[at], unit)})`;
}

function options(chart, log, width) {
  const bands = [];
  const named = { percentile: 'percentile', seconds: 'time', setting: chart.label }[chart.axis];
  const tick = (v) => (chart.axis === 'setting' ? chart.ticks[chart.x.indexOf(v)] : axisLabel(v, chart.axis));
  const series = [{ label: named, value: (_, v) => (v === null ? '' : tick(v)) }];
  chart.lines.forEach((line, i) => {
    const stroke = colour(`c${line.colour}`);
    series.push({
      label: line.label, stroke, width: line.width ?? 2, dash: line.dashed ? [6, 5] : undefined, spanGaps: false,
      points: { show: chart.x.length < 40 && !line.width, size: chart.apart ? 8 : 5, fill: stroke },
      paths: chart.apart ? () => null : undefined,
      value: (_, v, __, at) => (at === null ? '' : v === null || v === undefined ? '–' : spread(line, at, chart.unit) ?? format(v, chart.unit)), // at: under the cursor
    });
    if (line.band) bands.push({ series: [i + 1, i], fill: faint(stroke) });
  });
  return {
    width, height: Math.round(Math.min(420, Math.max(printing.matches ? 180 : 240, width * 0.4))), series, bands, axes: axes(chart, log),
    scales: {
      x: scaleOf(chart),
      y: log ? { distr: 3, range: (u, min, max) => decadesAround(...reach(u, chart, min, max)) } : { range: (u, min, max) => upTo(reach(u, chart, min, max)[1]) },
    },
    legend: { live: true, markers: { width: 0, fill: (u, i) => (i === 0 ? 'transparent' : series[i].stroke), dash: () => 'solid' } },
    hooks: { draw: [(plot) => drawMarks(plot, chart), (plot) => drawBars(plot, chart)] },
    cursor: { focus: { prox: 24 }, drag: { setScale: chart.axis === 'seconds', x: true, y: false } },
  };
}

// drawMarks draws what happened as vertical lines, with its name beside each.
function drawMarks(plot, chart) {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour('fore');
  ctx.lineWidth = scale;
  ctx.setLineDash([3 * scale, 3 * scale]);
  ctx.font = `${fontSize() * scale}px system-ui, sans-serif`;
  ctx.textBaseline = 'top';
  ctx.textAlign = 'left';
  for (const { at, what } of chart.marks ?? []) {
    const x = Math.round(plot.valToPos(at, 'x', true)) + 0.5; // in the middle of a pixel, so that it is sharp
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.save();
    ctx.translate(x + 3 * scale, bbox.top + 3 * scale);
    ctx.rotate(Math.PI / 2);
    ctx.fillText(what, 0, -fontSize() * scale, bbox.height - 6 * scale);
    ctx.restore();
  }
  ctx.restore();
}

// drawBars draws from the least to the greatest of the repetitions.
function drawBars(plot, chart) {
  const { ctx } = plot;
  ctx.save();
  ctx.lineWidth = 1.5 * devicePixelRatio;
  chart.lines.forEach((line, i) => {
    if (!line.low || !plot.series[i + 1].show) return;
    ctx.strokeStyle = colour(`c${line.colour}`);
    chart.x.forEach((v, at) => {
      if (line.low[at] === null || line.low[at] === line.high[at]) return;
      const x = plot.valToPos(v, 'x', true);
      ctx.beginPath();
      ctx.moveTo(x, plot.valToPos(line.low[at], 'y', true));
      ctx.lineTo(x, plot.valToPos(line.high[at], 'y', true));
      ctx.stroke();
    });
  });
  ctx.restore();
}

// mark makes the legend show a line as the chart does: solid or dashed.
function mark(plot, chart) {
  plot.root.querySelectorAll('.u-legend .u-series').forEach((row, i) => {
    const marker = row.querySelector('.u-marker');
    if (!marker) return;
    if (i === 0) { marker.style.display = 'none'; return; }
    const line = chart.lines[i - 1];
    marker.style.cssText = `border-top: 3px ${line.dashed ? 'dashed' : 'solid'} ${colour(`c${line.colour}`)}; background: none;`;
  });
}

function draw(figure, chart) {
  const state = drawn.get(figure) ?? { log: chart.log };
  state.plot?.destroy();
  if (!state.frame) build(figure, chart, state);
  const width = printing.matches ? printWidth[figure.matches(':first-child') ? 'whole' : 'half'] : Math.max(200, state.frame.clientWidth);
  const lines = chart.lines.map((l) => (state.log ? positive(l.values) : l.values));
  state.width = width;
  state.plot = new uPlot(options(chart, state.log, width), [chart.x, ...lines], state.frame);
  mark(state.plot, chart);
  drawn.set(figure, state);
  window.drawn = charts.filter((c) => drawn.has(document.getElementById(c.id))).map((c) => ({ id: c.id, data: drawn.get(document.getElementById(c.id)).plot.data }));
}

function build(figure, chart, state) {
  const caption = document.createElement('figcaption');
  caption.append(chart.title);
  if (chart.unit === 'ms') {
    const button = document.createElement('button');
    const say = () => { button.textContent = state.log ? 'linear axis' : 'logarithmic axis'; };
    button.type = 'button';
    button.addEventListener('click', () => { state.log = !state.log; say(); draw(figure, chart); });
    say();
    caption.append(button);
  }
  figure.append(caption);
  if (chart.note) {
    const note = document.createElement('p');
    note.textContent = chart.note;
    figure.append(note);
  }
  state.frame = document.createElement('div');
  state.frame.setAttribute('role', 'img');
  state.frame.setAttribute('aria-label', `${chart.title}: ${chart.lines.map((l) => l.label).join(', ')}`);
  figure.append(state.frame);
  new ResizeObserver(() => {
    if (!printing.matches && state.plot && Math.abs(state.frame.clientWidth - state.width) > 1) draw(figure, chart);
  }).observe(state.frame);
}

// drawAll draws what can be seen: of a topic that is folded up nothing.
function drawAll() {
  for (const chart of charts) {
    const figure = document.getElementById(chart.id);
    if (figure && !figure.closest('details.topic:not([open])')) draw(figure, chart);
  }
}

// unfold opens the topic that the address names.
function unfold() {
  const topic = document.getElementById(location.hash.slice(1));
  if (topic?.tagName === 'DETAILS') topic.open = true;
}

for (const topic of document.querySelectorAll('details.topic')) topic.addEventListener('toggle', () => { if (topic.open) drawAll(); });
window.addEventListener('hashchange', unfold);
unfold();

for (const media of [printing, dark]) media.addEventListener('change', drawAll);
drawAll();
