// How numbers are written, in charts as in the tables.

const significant = (v) => (Math.abs(v) >= 999.5 ? v.toFixed(0) : String(Number(v.toPrecision(3))));

// format writes a value of a chart with its unit.
export function format(v, unit) {
  if (unit === 'ms') {
    if (v === 0) return '0';
    if (v >= 1000) return `${significant(v / 1000)} s`;
    if (v >= 1) return `${significant(v)} ms`;
    if (v >= 0.001) return `${significant(v * 1000)} µs`;
    return `${significant(v * 1e6)} ns`;
  }
  if (unit === '%') return `${significant(v)} %`;
  if (unit === 'B/s') return bytes(v);
  const text = Math.abs(v) >= 10000 ? `${significant(v / 1000)}k` : significant(v);
  return unit ? `${text}${unit}` : text;
}

const bytes = (v) => {
  const [scale, prefix] = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']].find(([s]) => v >= s) ?? [1, ''];
  return `${significant(v / scale)} ${prefix}B/s`;
};

// percentile writes x = 1/(1-p) as p.
export function percentile(x) {
  const nines = Math.log10(x);
  if (Math.abs(nines - Math.round(nines)) > 1e-9) return `${(100 * (1 - 1 / x)).toFixed(Math.max(1, Math.ceil(nines)))} %`;
  const n = Math.round(nines);
  if (n === 0) return '0 %';
  if (n === 1) return '90 %';
  return n === 2 ? '99 %' : `99.${'9'.repeat(n - 2)} %`;
}

export const axisLabel = (x, axis) => (axis === 'percentile' ? percentile(x) : `${x.toFixed(1)} s`);
