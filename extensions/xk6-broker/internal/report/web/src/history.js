// The charts of a topic over time, from what summary.json has of it.

const latencies = {
  publish_latency: 'Publish latency', e2e_latency: 'End-to-end latency', delivery_wait: 'Delivery wait', request_latency: 'Request latency',
  schedule_lag: 'Schedule lag', generator_lag: 'Generator lag',
};

// quantiles are drawn where 10 samples lie beyond them.
const quantiles = [['p50', 'p50', 20], ['p90', 'p90', 100], ['p99', 'p99', 1000], ['p99.9', 'p999', 10000], ['max', 'max', 1]];

const names = (points, field) => [...new Set(points.flatMap((p) => Object.keys(p[field] ?? {})))].sort();

// chart keeps the lines that have a value; a line of zeros alone has none.
function chart(id, title, unit, intervals, lines, options = {}) {
  const longest = Math.max(0, ...intervals.map((i) => i.seconds));
  return {
    id, title, unit, axis: 'seconds', log: unit === 'ms', note: longest > 1.5 ? `Each point is of up to ${Math.round(longest)} s.` : '',
    x: intervals.map((i) => i.at),
    lines: lines.map((line, i) => ({ colour: i % 8, ...line })).filter((line) => line.values.some((v) => v !== null && (v !== 0 || options.zero))),
  };
}

// rates are counts per second. Each line is thinner than the one before, so that equal lines are all seen.
function rates(points, counters) {
  return counters.map((name, i) => ({
    label: name.replace('bytes_', ''), width: 2 * (counters.length - i),
    values: points.map((p) => (p.seconds > 0 ? (p.counts?.[name] ?? 0) / p.seconds : null)),
  }));
}

// chartsOf draws the latencies, the counts and the queues of a topic.
export function chartsOf({ id, points, overTime, marks }) {
  const all = Object.entries(latencies).map(([name, title]) => {
    const summaries = overTime?.[name] ?? [];
    return chart(name, `${title} over time`, 'ms', summaries, quantiles.map(([label, key, least]) => ({
      label, band: label !== 'p50', values: summaries.map((s) => (s.count >= least ? s[key] / 1e6 : null)),
    })), { zero: true });
  });
  points ??= [];
  const waiting = [
    { label: 'in flight, of the process', values: points.map((p) => p.inFlight) },
    { label: 'confirmed, not yet received', values: points.map((p) => p.outstanding) },
    ...names(points, 'backlog').map((group) => ({ label: `backlog ${group}`.trim(), values: points.map((p) => p.backlog?.[group] ?? null) })),
  ];
  const kinds = names(points, 'errorKinds').map((kind) => ({ label: kind, values: points.map((p) => (p.seconds > 0 ? (p.errorKinds?.[kind] ?? 0) / p.seconds : null)) }));
  all.push(
    chart('throughput', 'Throughput', '/s', points, rates(points, ['due', 'sent', 'confirmed', 'received'])),
    chart('bytes', 'Throughput in bytes of bodies', 'B/s', points, rates(points, ['bytes_sent', 'bytes_received'])),
    chart('queues', 'Backlog and in flight, the most that was seen', '', points, waiting, { zero: true }),
    chart('errors', 'Errors by kind', '/s', points, kinds),
    chart('cpu', "CPU of the load generator's process", '%', points, [{ label: 'share of its CPUs', values: points.map((p) => 100 * p.cpu) }]),
  );
  return all.filter((c) => c.lines.length > 0).map((c) => ({ ...c, id: `${id}-${c.id}`, marks }));
}
