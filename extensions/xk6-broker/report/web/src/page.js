// Draws the charts that the page carries as JSON into the figures of the same id, in the colours of the present theme.
import uPlot from 'uplot';
import { axisLabel, format, percentile } from './format.js';

const charts = JSON.parse(document.getElementById('charts').textContent);
const printing = matchMedia('print');
const dark = matchMedia('(prefers-color-scheme: dark)');
const printWidth = 660; // of a page of A4 or letter, in CSS pixels
const drawn = new Map(); // figure -> { plot, frame, log }
window.drawn = []; // for tests: what is drawn now

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const faint = (hex) => `${hex}2e`;

function axes(chart) {
  const common = { stroke: colour('soft'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line') }, font: '12px system-ui, sans-serif' };
  const x = { ...common };
  if (chart.axis === 'percentile') {
    x.splits = (_, __, min, max) => decades(min, max);
    x.values = (_, splits) => splits.map(percentile);
    x.label = 'percentile';
  } else {
    x.values = (_, splits) => splits.map((s) => `${s}`);
    x.label = 'seconds from the start';
  }
  x.size = 34;
  x.labelSize = 18;
  x.labelGap = -2;
  x.labelFont = common.font;
  const y = { ...common, size: 68, values: (_, splits) => splits.map((v) => (v === null ? '' : format(v, chart.unit))) };
  return [x, y];
}

function decades(min, max) {
  const all = [];
  for (let k = Math.round(Math.log10(min)); 10 ** k <= max * 1.0001; k++) all.push(10 ** k);
  return all;
}

// positive keeps what a logarithmic axis can show.
const positive = (values) => values.map((v) => (v === null || v > 0 ? v : null));

// range of a logarithmic axis: whole decades around the values.
function decadesAround(_, min, max) {
  if (!(min > 0)) return [0.01, 1];
  return [10 ** Math.floor(Math.log10(min)), 10 ** Math.ceil(Math.log10(max) + 1e-9)];
}

function options(chart, log, width) {
  const bands = [];
  const series = [{ label: chart.axis === 'percentile' ? 'percentile' : 'time', value: (_, v) => (v === null ? '–' : axisLabel(v, chart.axis)) }];
  chart.lines.forEach((line, i) => {
    const stroke = colour(`c${line.colour}`);
    series.push({
      label: line.label, stroke, width: line.width ?? 2, dash: line.dashed ? [6, 5] : undefined, spanGaps: false,
      points: { show: chart.x.length < 40 && !line.width, size: 5, fill: stroke },
      value: (_, v) => (v === null || v === undefined ? '–' : format(v, chart.unit)),
    });
    if (line.band) bands.push({ series: [i + 1, i], fill: faint(stroke) });
  });
  return {
    width, height: Math.round(Math.min(420, Math.max(240, width * 0.4))), series, bands, axes: axes(chart),
    scales: {
      x: chart.axis === 'percentile' ? { time: false, distr: 3, range: (_, min, max) => [1, Math.max(10, max)] } : { time: false },
      y: log ? { distr: 3, range: decadesAround } : { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] },
    },
    legend: { live: true, markers: { width: 0, fill: (u, i) => (i === 0 ? 'transparent' : series[i].stroke), dash: () => 'solid' } },
    cursor: { focus: { prox: 24 }, drag: { setScale: chart.axis === 'seconds', x: true, y: false } },
  };
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
  const width = printing.matches ? printWidth : Math.max(200, state.frame.clientWidth);
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

function drawAll() {
  for (const chart of charts) {
    const figure = document.getElementById(chart.id);
    if (figure) draw(figure, chart);
  }
}

for (const media of [printing, dark]) media.addEventListener('change', drawAll);
drawAll();
