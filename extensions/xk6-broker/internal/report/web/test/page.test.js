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

const executablePath = process.env.CHROMIUM || '/usr/bin/chromium';
const missing = await access(executablePath).then(() => false, () => `there is no ${executablePath} (CHROMIUM names a browser)`);

test('the committed bundle is what its source builds', async () => {
  const fresh = await mkdtemp(path.join(os.tmpdir(), 'report-'));
  try {
    await buildInto(fresh);
    for (const name of ['page.js', 'page.css']) {
      const [built, committed] = await Promise.all([fresh, new URL('../../assets/', import.meta.url).pathname].map((d) => readFile(path.join(d, name), 'utf8')));
      assert.ok(built === committed, `${name} differs: run make report-assets`);
    }
  } finally {
    await rm(fresh, { recursive: true });
  }
});

describe('report.html', { skip: missing }, () => {
  const url = pathToFileURL(path.join(folder, 'report.html')).href;
  const topic = summary.topics[0];
  let browser;

  before(async () => {
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
  });
  after(() => browser?.close());

  // open gives the page once it has drawn, and what it complained of or asked of the network.
  async function open(options, address = url) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const wrong = [];
    page.on('console', (m) => wrong.push(`console: ${m.text()}`));
    page.on('pageerror', (e) => wrong.push(`error: ${e}`));
    page.on('request', (r) => { if (r.url() !== address && !r.url().startsWith('data:')) wrong.push(`request: ${r.url()}`); });
    await page.goto(address);
    await page.waitForFunction(() => window.drawn.length > 0);
    return { page, wrong, close: () => context.close() };
  }

  for (const [name, options] of Object.entries({
    light: { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
    dark: { colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
    phone: { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true },
    'without room for every label': { viewport: { width: 280, height: 700 } },
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

  for (const [name, options] of Object.entries({ light: { colorScheme: 'light', viewport: { width: 1280, height: 900 } }, phone: { colorScheme: 'dark', viewport: { width: 360, height: 740 } } })) {
    test(`charts over settings have an axis of their values, and bars from the least to the greatest: ${name}`, async () => {
      const { page, wrong, close } = await open(options, pathToFileURL(path.join(folder, '../settings.html')).href);
      assert.deepEqual(await page.evaluate(() => window.drawn.map((c) => c.id)), ['numbers', 'decades', 'names']);
      const [needed, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(needed <= there, `the page is ${needed} wide on a screen of ${there}`);
      // Of the first line, a bar goes from the greatest of the last value, 9, down to its point, 6: right of the middle, and above where any line is.
      const above = (id) => page.locator(`#${id} canvas`).evaluate((canvas) => {
        const hex = getComputedStyle(document.documentElement).getPropertyValue('--c0').trim();
        const want = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
        const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let highest = height;
        for (let i = 0; i < data.length; i += 4) {
          if (want.every((c, k) => Math.abs(data[i + k] - c) < 40) && data[i + 3] > 150) { highest = Math.floor(i / 4 / width); break; }
        }
        return highest / height;
      });
      const reached = await above('numbers');
      assert.ok(reached < 0.12, `the bar reaches up to ${reached}`);
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
    await page.waitForFunction(() => [...document.querySelectorAll('figure canvas')].every((c) => c.clientWidth === (c.closest('figure').matches(':first-child') ? 660 : 320)));
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
      const cells = await values(section.locator(`table.latencies tr[data-row="${name}"]`));
      const want = [trend.count, ...shown.map((q) => topic.percentiles[name].find((p) => p.q === q)).map((p) => (p.supported ? p.value : undefined)), trend.max];
      assert.deepEqual(cells, want.map((v) => (v === undefined ? v : String(v))), name);
    }
    for (const group of topic.groups) {
      const row = section.locator(`table.accounting tr[data-row="${group.group}"]`);
      for (const name of ['expected', 'received', 'lost', 'undelivered', 'duplicated', 'reordered', 'redelivered', 'settled', 'unexpected', 'foreign']) {
        const cell = row.locator(`[data-label="${name}"], [data-label^="${name} ("]`); // what is 0 for every group may have no column
        assert.equal(await cell.count() ? await cell.getAttribute('data-value') : '0', String(group[name]), name);
      }
    }
    for (const [name, n] of Object.entries(topic.counts)) assert.deepEqual(await values(section.locator(`table.counts tr[data-row="${name}"]`)), [String(n)], name);
    assert.deepEqual(await values(section.locator('table.errors tbody tr').first()), [String(topic.errors[0].count)]);
    const verdict = await page.locator('#verdict').innerText();
    assert.ok(verdict.startsWith(summary.verdict.valid ? '✓ valid' : '✗ NOT VALID'));
    for (const { text } of summary.verdict.reasons) assert.ok(verdict.includes(text), text);
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
    const [at, due, sent, confirmed, received] = drawn['topic1-throughput'];
    assert.deepEqual(at, topic.history.map((p) => p.at));
    for (const [line, name] of [[due, 'due'], [sent, 'sent'], [confirmed, 'confirmed'], [received, 'received']]) {
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

  test('what the script marked is drawn into the charts over time', async () => {
    const { page, close } = await open({ viewport: { width: 1280, height: 900 } });
    const dark = (id, at) => page.evaluate(([id, at]) => {
      const canvas = document.querySelector(`#${id} canvas`);
      const over = document.querySelector(`#${id} .u-over`);
      const [left, top, wide, high] = ['left', 'top', 'width', 'height'].map((k) => parseFloat(over.style[k]) * devicePixelRatio);
      const { data } = canvas.getContext('2d').getImageData(Math.round(left + wide * at) - 2, top, 5, high);
      let n = 0;
      for (let i = 0; i < data.length; i += 4) if (data[i] < 60 && data[i + 1] < 60 && data[i + 2] < 70 && data[i + 3] > 200) n++;
      return n;
    }, [id, at]);
    const at = (second) => (second - 1) / 19; // the axis goes from the first second to the twentieth
    assert.deepEqual(summary.marks.map((m) => m.at), [8, 10]);
    for (const { at: second } of summary.marks) assert.ok(await dark('topic1-throughput', at(second)) > 50, `no line at ${second} s`);
    assert.equal(await dark('topic1-throughput', at(15)), 0);
    await close();
  });

  test('what was tested, thresholds and checks are shown', async () => {
    const { page, close } = await open();
    const tested = await page.locator('#test').innerText();
    for (const s of summary.test.scenarios) {
      const row = await page.locator(`tr[data-row="${s.name}"]`).innerText();
      for (const text of [s.executor, s.exec, ...Object.keys(s.options), ...Object.values(s.options).map(String)]) assert.ok(row.includes(text), `${s.name}: ${text}`);
    }
    for (const t of summary.thresholds) assert.ok(tested.includes(t.source) && tested.includes(t.metric), t.metric);
    assert.deepEqual(await page.locator('table.thresholds tr td:last-child').evaluateAll((cells) => cells.map((c) => c.innerText[0])), ['✗', '✓', '?', '✗']);
    assert.deepEqual(await page.locator('table.checks td').evaluateAll((cells) => cells.map((c) => c.dataset.value)), summary.checks.flatMap((c) => [String(c.passes), String(c.fails)]));
    const setup = await page.locator('#topic1 table.setup').innerText();
    for (const users of Object.values(topic.options)) for (const options of users) for (const name of Object.keys(options)) assert.ok(setup.includes(name), name);
    assert.ok(setup.includes('1000000') && setup.includes('["a","b"]') && setup.includes('consumers 2') && setup.includes('100 bytes'), setup);
    assert.deepEqual(await page.locator('table.beliefs tbody tr').evaluateAll((rows) => rows.map((r) => r.children[1].dataset.value)), summary.verdict.beliefs.map((b) => String(b.upTo)));
    await close();
  });

  test('on a phone every cell of a table can be seen without a sideways scroll', async () => {
    const { page, close } = await open({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
    const cut = await page.locator('table.stack td').evaluateAll((cells) => cells.map((c) => [c.innerText, c.getBoundingClientRect().right]).filter(([, right]) => right > innerWidth));
    assert.deepEqual(cut, []);
    assert.equal(await page.locator('table.latencies td[data-label="p99"]').first().evaluate((c) => getComputedStyle(c, '::before').content), '"p99"');
    await close();
  });

  test('of many topics there is a table, and each unfolds', async () => {
    const crowded = pathToFileURL(path.join(folder, '../crowded/report.html')).href;
    const { page, wrong, close } = await open({ viewport: { width: 1280, height: 900 } }, crowded);
    const topics = await page.locator('details.topic').count();
    assert.ok(topics > 3);
    assert.equal(await page.locator('table.topics tbody tr').count(), topics);
    assert.equal(await page.locator('details.topic canvas').count(), 0);
    await page.locator('table.topics a').nth(2).click();
    await page.waitForFunction(() => document.querySelectorAll('#topic3 canvas').length > 5);
    assert.deepEqual(await page.locator('details.topic[open]').evaluateAll((all) => all.map((d) => d.id)), ['topic3']);
    assert.deepEqual(wrong.filter((w) => !w.includes('#topic3')), []);
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
