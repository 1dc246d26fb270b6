// What HdrHistogram's own library for JavaScript makes of our files.
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import test from 'node:test';
import hdr from 'hdr-histogram-js';
import { folder, summary } from './results.js';

const names = await readdir(folder);
const read = (name) => readFile(path.join(folder, name), 'utf8');
const trendOf = (name) => name.split('.').at(-2);
const topic = summary.topics[0];

// The tool knows a value as its bucket: within a thousandth.
const near = (a, b, what) => assert.ok(Math.abs(a - b) <= Math.max(1e-3 * Math.abs(b), 1e-3), `${what}: ${a} and ${b}`);

function whole(text) {
  const reader = new hdr.HistogramLogReader(text);
  const all = hdr.build({ highestTrackableValue: 3_600_000_000_000, bitBucketSize: 64 });
  let intervals = 0;
  for (let h; (h = reader.nextIntervalHistogram()) !== null; intervals++) {
    assert.ok(h.endTimeStampMsec > h.startTimeStampMsec);
    all.add(h);
  }
  return { all, intervals };
}

// rows of the text form: value, percentile, count.
const rows = (text) => text.split('\n').map((l) => l.trim().split(/\s+/)).filter((f) => /^[\d.]+$/.test(f[0]) && f.length === 4).map((f) => f.map(Number));

for (const name of names.filter((n) => n.startsWith('orders___script_.') && n.endsWith('.hlog'))) {
  test(`${name} adds up to summary.json`, async () => {
    const { all, intervals } = whole(await read(name));
    const trend = topic.trends[trendOf(name)];
    assert.equal(intervals, topic.overTime[trendOf(name)].filter((s) => s.count > 0).length);
    assert.equal(all.totalCount, trend.count);
    for (const { q, value } of topic.percentiles[trendOf(name)]) near(all.getValueAtPercentile(100 * q), value, `p(${q})`);
  });

  test(`${name.replace('.hlog', '.hgrm')} is what the library prints of the log`, async () => {
    const { all } = whole(await read(name));
    const ours = rows(await read(name.replace('.hlog', '.hgrm')));
    const theirs = rows(all.outputPercentileDistribution(5, 1e6));
    assert.ok(ours.length > 50, 'not a complete distribution');
    assert.equal(ours.at(-1)[2], topic.trends[trendOf(name)].count);
    for (const [value, percentile, total] of ours) {
      near(value, all.getValueAtPercentile(100 * percentile) / 1e6, `p(${percentile})`);
      assert.ok(total <= all.totalCount);
    }
    near(ours.at(-1)[0], theirs.at(-1)[0], 'the greatest value');
  });
}

for (const [name, trend] of Object.entries(topic.trends)) {
  test(`the distribution of ${name} in summary.json`, () => {
    const h = hdr.decodeFromCompressedBase64(trend.hdr, 64);
    assert.equal(h.totalCount, trend.count);
    for (const { q, value, beyond, supported } of topic.percentiles[name]) {
      near(h.getValueAtPercentile(100 * q), value, `p(${q})`);
      assert.equal(supported, beyond >= 10);
    }
  });
}
