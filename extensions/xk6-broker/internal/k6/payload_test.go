package k6

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.k6.io/k6/v2/lib/fsext"
)

func TestMistakesInAPayload(t *testing.T) {
	s := newScript(t)
	s.mustRun(`globalThis.p = broker.connect('memory://h').producer('t');`)
	fine := errInInit.Error()
	for options, want := range map[string]string{
		`payload: {}`: fine,
		`payload: { size: 100, keys: 5, random: 0 }`: fine,
		`payload: { size: 39 }`:                      `"payload.size": 39 is less than the 40 bytes of the trace stamp`,
		`payload: { size: -1 }`:                      `produce: payload: option "size": -1 is not an integer from 0`,
		`payload: { size: '1' }`:                     `option "size": "1" is not an integer`,
		`payload: { colour: 1 }`:                     `produce: payload: no option "colour": known are bodies, headers, keys, order, properties, random, size`,
		`payload: 5`:                                 `produce: option "payload": 5 is not an object`,
		`payload: { size: { distribution: 'uniform', min: 50, max: 60 } }`:                fine,
		`payload: { size: { distribution: 'uniform', max: 60 } }`:                         fine,
		`payload: { size: { distribution: 'uniform', max: 30 } }`:                         `payload: size: option "max": 30 is not an integer from 40 to`,
		`payload: { size: { distribution: 'uniform', min: 50 } }`:                         `produce: payload: size: option "max" is missing: an integer from 50 to`,
		`payload: { size: { distribution: 'uniform', min: 50, max: 40 } }`:                `payload: size: option "max": 40 is not an integer from 50 to`,
		`payload: { size: { distribution: 'uniform', min: 10, max: 40 } }`:                `"payload.size": 10 is less than the 40 bytes`,
		`payload: { size: { distribution: 'uniform', max: 40, mean: 3 } }`:                `payload: size: no option "mean": known are distribution, max, min`,
		`payload: { size: { distribution: 'normal', mean: 500, deviation: 9, min: 40 } }`: fine,
		`payload: { size: { distribution: 'normal', mean: 500 } }`:                        `option "deviation" is missing`,
		`payload: { size: { distribution: 'normal', mean: 500, deviation: 0 } }`:          `option "deviation": 0 is not an integer from 1`,
		`payload: { size: { distribution: 'gamma' } }`:                                    `payload: size: option "distribution": "gamma" is not one of uniform, normal`,
		`payload: { size: {} }`: `option "distribution": "" is not one of uniform, normal`,
		`payload: { size: [{ size: 50, weight: 9 }, { size: 5000 }] }`: fine,
		`payload: { size: [] }`:                                                     `a list of { size, weight } of which one has a weight above 0`,
		`payload: { size: [{ size: 50, weight: 0 }] }`:                              `of which one has a weight above 0`,
		`payload: { size: [50] }`:                                                   `option "size": 50 is not { size, weight }, as the entry 0`,
		`payload: { size: [{ size: 50, weight: -1 }] }`:                             `payload: size 0: option "weight": -1 is not a number of 0 or more`,
		`payload: { size: [{ weight: 1 }] }`:                                        `payload: size 0: option "size" is missing`,
		`payload: { keys: { count: 10, distribution: 'zipf', exponent: 0.99 } }`:    fine,
		`payload: { keys: { count: 10, distribution: 'uniform' } }`:                 fine,
		`payload: { keys: { distribution: 'zipf' } }`:                               `payload: keys: option "count" is missing`,
		`payload: { keys: { count: 10, distribution: 'zipf', exponent: -1 } }`:      `option "exponent": -1 is not a number from 0 to 100`,
		`payload: { keys: { count: 10, distribution: 'round' } }`:                   `option "distribution": "round" is not one of uniform, zipf`,
		`payload: { keys: { count: 10, distribution: 'uniform', exponent: 1 } }`:    `payload: keys: no option "exponent"`,
		`payload: { bodies: ['a', new ArrayBuffer(3), { b: 1 }], order: 'random' }`: fine,
		`payload: { bodies: [] }`:                                                   `option "bodies": the list is empty`,
		`payload: { bodies: 'a' }`:                                                  `a list of bodies is needed, or broker.bodies(path)`,
		`payload: { bodies: ['a', () => 1] }`:                                       `option "bodies": body 1: it is a function`,
		`payload: { bodies: ['a'], size: 50 }`:                                      `options "size" and "bodies"`,
		`payload: { bodies: ['a'], order: 'sorted' }`:                               `option "order": "sorted" is not one of in-turn, random`,
		`payload: { order: 'random' }`:                                              `option "order" needs "bodies"`,
		`payload: { headers: { a: 1 } }`:                                            fine,
		`payload: { headers: { 'x-k6-stamp': 1 } }`:                                 `the producer adds the trace stamp`,
		`payload: { properties: { nosuch: 1 } }`:                                    `produce: payload: option "properties": messages of memory have none`,
		`batch: { min: 1, max: 10 }`:                                                fine,
		`batch: { min: 11, max: 10 }`:                                               `produce: batch: option "max": 10 is not an integer from 11`,
		`batch: { max: 10, least: 2 }`:                                              `produce: batch: no option "least"`,
		`trace: '0 50 a\n1 60', seed: 3`:                                            fine,
		`trace: '0 10'`:                                                             `"payload.size": 10 is less than the 40 bytes`,
		`trace: '0 50', payload: { size: 50 }`:                                      `the trace has sizes: give no others`,
		`trace: '0 50', payload: { bodies: ['a'] }`:                                 `the trace has sizes: give no others, and no bodies`,
		`trace: '0 50 a', payload: { keys: 5 }`:                                     `the trace has keys: give no others`,
		`trace: '0 50 a b'`:                                                         `option "trace": trace: line 1: a due time, a size and a key are all there can be`,
	} {
		if _, err := s.run("await p.produce({ count: 1, " + options + " })"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", options, err, want)
		}
	}
}

// What a script asks for is what consumers get, in order of the messages, and the same again with
// the same seed.
func TestPayloadsArrive(t *testing.T) {
	s := newScript(t).begin()
	s.mustRun(`
		globalThis.conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 });
		globalThis.load = async (topic, options) => {
			await conn.createTopic(topic);
			const c = conn.consumer(topic, { group: 'g' });
			await c.ready();
			const made = await conn.producer(topic).produce({ count: 60, ...options });
			if (made.confirmed !== (options.count || 60)) throw new Error(JSON.stringify(made));
			const all = [];
			while (all.length < made.confirmed) {
				const some = await c.receive({ max: 100 });
				if (some.length === 0) throw new Error(all.length + ' came');
				all.push(...some.map((m) => ({ key: m.key, size: m.body.byteLength, text: m.text(), headers: JSON.stringify(m.headers) })));
				await c.ack(some);
			}
			return all;
		};
		globalThis.same = (a, b, what) => { if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(what + ': ' + JSON.stringify(a) + ' and ' + JSON.stringify(b)); };`)
	s.mustRun(`
		const bodies = ['{"order":1}', 'two', new Uint8Array([51]).buffer];
		const got = await load('given', { payload: { bodies, headers: { kind: 'order', n: 1 }, keys: 2 } });
		same(got.slice(0, 4).map((m) => m.text), ['{"order":1}', 'two', '3', '{"order":1}'], 'bodies');
		same(got.slice(0, 3).map((m) => m.key), ['key-0', 'key-1', 'key-0'], 'keys');
		same(got[7].headers, '{"kind":"order","n":"1"}', 'headers');`)
	s.mustRun(`
		const payload = { size: { distribution: 'uniform', min: 40, max: 200 }, keys: { count: 5, distribution: 'zipf' } };
		const shape = (all) => all.map((m) => [m.size, m.key]);
		const once = shape(await load('once', { payload, seed: 5 })), again = shape(await load('again', { payload, seed: 5, batch: { min: 2, max: 7 } }));
		same(once, again, 'one seed');
		const other = shape(await load('other', { payload, seed: 6 }));
		if (JSON.stringify(once) === JSON.stringify(other)) throw new Error('another seed makes the same');
		const sizes = new Set(once.map(([size]) => size));
		if (sizes.size < 20 || Math.min(...sizes) < 0 || Math.max(...sizes) > 160) throw new Error([...sizes].join());`)
	s.mustRun(`
		const got = await load('traced', { trace: '0 50 a\n0.001 60\n0.002 70 b', count: 3 });
		same(got.map((m) => [m.size, m.key]), [[10, 'a'], [20, null], [30, 'b']], 'trace');`)
}

func TestBodiesOfFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.json": "{}", "a.txt": "\ufeffone\r\ntwo\n\n \t\r\n four", ".hidden": "x", "empty.ndjson": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, empty := range []string{"nothing", "inner"} {
		if err := os.Mkdir(filepath.Join(dir, empty), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := newScript(t)
	s.init.CWD = &url.URL{Scheme: "file", Path: dir}
	s.init.FileSystems = map[string]fsext.Fs{"file": fsext.NewOsFs()}
	for call, want := range map[string]string{
		`broker.bodies('a.txt').count`:                  "1",
		`broker.bodies('a.txt', { lines: true }).count`: "3",
		`broker.bodies('.').count`:                      "3",
		`broker.bodies('./').count`:                     "3",
		`broker.bodies('.', { lines: true }).count`:     "4",
	} {
		if got, err := s.run("return String(" + call + ")"); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %s", call, got, err, want)
		}
	}
	for call, want := range map[string]string{
		`broker.bodies('none.txt')`:                      "bodies: none.txt: ",
		`broker.bodies('nothing')`:                       "bodies: nothing: it has no body",
		`broker.bodies('empty.ndjson', { lines: true })`: "it has no body",
		`broker.bodies('a.txt', { line: true })`:         `bodies: no option "line": known are lines`,
		`broker.bodies()`:                                "the path of a file or a folder is missing",
	} {
		if _, err := s.run(call); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", call, err, want)
		}
	}
	s.mustRun(`globalThis.lines = broker.bodies('a.txt', { lines: true });`)
	s.begin()
	if _, err := s.run(`broker.bodies('a.txt')`); err == nil || !strings.Contains(err.Error(), "init context only") {
		t.Errorf("%v", err)
	}
	s.mustRun(`
		const conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 });
		await conn.createTopic('t');
		const c = conn.consumer('t', { group: 'g' });
		await c.ready();
		await conn.producer('t').produce({ count: 5, payload: { bodies: lines } });
		let text = '';
		while (text.split('|').length < 6) { const some = await c.receive({ max: 5 }); await c.ack(some); text += some.map((m) => m.text() + '|').join(''); }
		if (text !== 'one|two| four|one|two|') throw new Error(text);`)
}
