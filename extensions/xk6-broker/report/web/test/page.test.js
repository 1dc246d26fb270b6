// The page of a run in a real browser.
import assert from 'node:assert/strict';
import { access, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import test, { after, before, describe } from 'node:test';
import { pathToFileURL } from 'node:url';
import hdr from 'hdr-histogram-js';
import { chromium } from 'playwright-core';
import { buildInto } from '../build.js';
import { folder, summary } from './results.js';

const candidates = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'];
const executablePath = await (async () => {
  for (const file of candidates.filter(Boolean)) if (await access(file).then(() => true, () => false)) return file;
})();

test('the committed bundle is what its source builds', async () => {
  const fresh = await mkdtemp(path.join(os.tmpdir(), 'report-'));
  try {
    await buildInto(fresh);
    for (const name of ['page.js', 'page.css', 'LICENSES.txt']) {
      const [built, committed] = await Promise.all([fresh, new URL('../../assets/', import.meta.url).pathname].map((d) => readFile(path.join(d, name), 'utf8')));
      assert.ok(built === committed, `${name} differs: run make report-assets`);
    }
  } finally {
    await rm(fresh, { recursive: true });
  }
});

describe('report.html', { skip: executablePath ? false : 'there is no Chromium (CHROMIUM names one)' }, () => {
  const url = pathToFileURL(path.join(folder, 'report.html')).href;
  const topic = summary.topics[0];
  let browser;

  before(async () => {
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
  });
  after(() => browser?.close());

  // open gives the page once it has drawn, and what it complained of or asked of the network.
  async function open(options) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const wrong = [];
    page.on('console', (m) => wrong.push(`console: ${m.text()}`));
    page.on('pageerror', (e) => wrong.push(`error: ${e}`));
    page.on('request', (r) => { if (r.url() !== url && !r.url().startsWith('data:')) wrong.push(`request: ${r.url()}`); });
    await page.goto(url);
    await page.waitForFunction(() => window.drawn.length > 0);
    return { page, wrong, close: () => context.close() };
  }

  for (const [name, options] of Object.entries({
    light: { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
    dark: { colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
    phone: { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true },
  })) {
    test(`draws every chart, without a complaint or a request: ${name}`, async () => {
      const { page, wrong, close } = await open(options);
      const figures = await page.locator('figure.chart').count();
      assert.ok(figures >= 8);
      assert.equal(await page.locator('figure.chart canvas').count(), figures);
      const [needed, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(needed <= there, `the page is ${needed} wide on a screen of ${there}`);
      // Something was painted in the colour of the first line.
      const painted = await page.locator('figure.chart canvas').first().evaluate((canvas) => {
        const hex = getComputedStyle(document.documentElement).getPropertyValue('--c0').trim();
        const want = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let n = 0;
        for (let i = 0; i < data.length; i += 4) if (want.every((c, k) => Math.abs(data[i + k] - c) < 8) && data[i + 3] > 200) n++;
        return n;
      });
      assert.ok(painted > 50, `${painted} pixels of the first line`);
      assert.deepEqual(wrong, []);
      await close();
    });
  }

  test('the themes differ, and print is light', async () => {
    const { page, close } = await open({ colorScheme: 'dark' });
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(await back(), 'rgb(15, 19, 23)');
    await page.emulateMedia({ colorScheme: 'light' });
    assert.equal(await back(), 'rgb(255, 255, 255)');
    await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
    assert.equal(await back(), 'rgb(255, 255, 255)');
    await page.waitForFunction(() => [...document.querySelectorAll('figure canvas')].every((c) => c.clientWidth === 660));
    const pdf = await page.pdf({ format: 'A4' });
    assert.ok(pdf.length > 10_000);
    await close();
  });

  test('the tables hold the numbers of summary.json', async () => {
    const { page, close } = await open();
    const section = page.locator('section.topic').first();
    const values = (locator) => locator.locator('td').evaluateAll((cells) => cells.map((c) => c.dataset.value));
    const shown = [0.5, 0.9, 0.99, 0.999];
    for (const [name, trend] of Object.entries(topic.trends)) {
      const cells = await values(section.locator(`tr[data-trend="${name}"]`));
      const want = [trend.count, ...shown.map((q) => topic.percentiles[name].find((p) => p.q === q)).map((p) => (p.supported ? p.value : undefined)), trend.max];
      assert.deepEqual(cells, want.map((v) => (v === undefined ? v : String(v))), name);
    }
    for (const group of topic.groups) {
      const row = section.locator(`tr[data-group="${group.group}"]`);
      for (const name of ['expected', 'received', 'lost', 'undelivered', 'duplicated', 'reordered', 'redelivered', 'settled', 'unexpected', 'foreign']) {
        assert.equal(await row.locator(`[data-name="${name}"]`).getAttribute('data-value'), String(group[name]), name);
      }
    }
    for (const [name, n] of Object.entries(topic.counts)) assert.deepEqual(await values(section.locator(`tr[data-count="${name}"]`)), [String(n)], name);
    assert.deepEqual(await values(section.locator('table.errors tbody tr').first()), [undefined, undefined, String(topic.errors[0].count)].map((v) => v));
    const verdict = await page.locator('#verdict').innerText();
    assert.ok(verdict.startsWith(summary.verdict.valid ? '✓ Valid' : '✗ Not valid'));
    for (const text of [...summary.verdict.reasons, ...summary.verdict.notes]) assert.ok(verdict.includes(text), text);
    await close();
  });

  test('the curves and the history are those of summary.json', async () => {
    const { page, close } = await open();
    const drawn = Object.fromEntries((await page.evaluate(() => window.drawn)).map((c) => [c.id, c.data]));
    const [xs, publish, publishTime] = drawn['topic1-curves'];
    for (const [line, name] of [[publish, 'publish_latency'], [publishTime, 'publish_time']]) {
      const h = hdr.decodeFromCompressedBase64(topic.trends[name].hdr, 64);
      let supported = 0;
      xs.forEach((x, i) => {
        if (line[i] === null || line[i] === undefined) return assert.ok(topic.trends[name].count / x < 10.001 || i === 0, `no value at ${x}`);
        supported++;
        const want = x === 1 ? topic.trends[name].min : h.getValueAtPercentile(100 * (1 - 1 / x));
        assert.ok(Math.abs(line[i] * 1e6 - want) <= 2e-3 * want + 2, `${name} at ${x}: ${line[i]} ms, ${want} ns`);
      });
      assert.ok(supported > 60);
    }
    const [at, due, sent, confirmed] = drawn['topic1-throughput'];
    assert.deepEqual(at, topic.history.map((p) => p.at));
    for (const [line, name] of [[due, 'due'], [sent, 'sent'], [confirmed, 'confirmed']]) {
      assert.deepEqual(line, topic.history.map((p) => (p.counts[name] ?? 0) / p.seconds), name);
    }
    const [, inFlight, outstanding, backlog] = drawn['topic1-queues'];
    assert.deepEqual(inFlight, topic.history.map((p) => p.inFlight));
    assert.deepEqual(outstanding, topic.history.map((p) => p.outstanding));
    assert.deepEqual(backlog, topic.history.map((p) => p.backlog.workers));
    const max = drawn['topic1-publish_latency'].at(-1);
    assert.deepEqual(max.map((v) => (v === null ? null : Math.round(v * 1e6))), topic.overTime.publish_latency.map((s) => (s.count > 0 ? s.max : null)));
    await close();
  });

  test('hovering shows values', async () => {
    const { page, close } = await open({ viewport: { width: 1280, height: 900 } });
    const figure = page.locator('#topic1-throughput');
    await figure.scrollIntoViewIfNeeded();
    const over = await figure.locator('.u-over').boundingBox();
    await page.mouse.move(over.x + over.width * (9 / 19), over.y + over.height / 2); // the tenth second
    await page.waitForFunction(() => document.querySelector('#topic1-throughput .u-series .u-value').textContent === '10.0 s');
    assert.deepEqual(await figure.locator('.u-value').allInnerTexts(), ['10.0 s', '1000/s', '1000/s', '0/s', '0/s']);
    await close();
  });

  test('the axis of values changes between logarithmic and linear', async () => {
    const { page, close } = await open();
    const button = page.locator('#topic1-curves button');
    assert.equal(await button.innerText(), 'linear axis');
    await button.click();
    assert.equal(await button.innerText(), 'logarithmic axis');
    assert.equal(await page.locator('#topic1-curves canvas').count(), 1);
    await close();
  });
});
