package k6

import (
	"fmt"
	"strings"
	"testing"

	"github.com/grafana/sobek"
)

// shapes are what a script may give for a body, a key or the value of a header, and what arrives of
// each: its bytes, or an error.
var shapes = []struct{ shape, arrives, fails string }{
	{shape: `'hi'`, arrives: "hi"},
	{shape: `''`, arrives: ""},
	{shape: `new String('hi')`, arrives: `"hi"`},
	{shape: `7`, arrives: "7"},
	{shape: `7n`, arrives: "7"},
	{shape: `true`, arrives: "true"},
	{shape: `NaN`, arrives: "NaN"},
	{shape: `Symbol('s')`, fails: "it is a symbol"},
	{shape: `null`, fails: "it is missing"},
	{shape: `undefined`, fails: "it is missing"},
	{shape: `() => 1`, fails: "it is a function"},
	{shape: `async () => 1`, fails: "it is a function"},
	{shape: `class {}`, fails: "it is a function"},
	{shape: `Promise.resolve(1)`, fails: "it is a function, a promise, a Map or a Set"},
	{shape: `[1, 'x']`, arrives: `[1,"x"]`},
	{shape: `[, 1]`, arrives: `[null,1]`},
	{shape: `{ a: 1 }`, arrives: `{"a":1}`},
	{shape: `Object.create(null)`, arrives: `{}`},
	{shape: `new Date(0)`, arrives: `"1970-01-01T00:00:00.000Z"`},
	{shape: `(() => { const a = {}; a.a = a; return a; })()`, fails: "it cannot be written as JSON"},
	{shape: `{ toJSON() { throw new Error('mine'); } }`, fails: "mine"},
	{shape: `{ get a() { throw new Error('mine'); } }`, fails: "mine"},
	{shape: `new Proxy({ a: 1 }, {})`, arrives: `{"a":1}`},
	{shape: `new Proxy({}, { get() { throw new Error('mine'); } })`, fails: "mine"},
	{shape: `(() => { const p = Proxy.revocable({}, {}); p.revoke(); return p.proxy; })()`, fails: "revoked"},

	// Bytes, and what only looks like them.
	{shape: `bytes.buffer`, arrives: "0123456789"},
	{shape: `new ArrayBuffer(0)`, arrives: ""},
	{shape: `bytes`, arrives: "0123456789"},
	{shape: `bytes.subarray(2, 4)`, arrives: "23"},
	{shape: `bytes.subarray(5, 5)`, arrives: ""},
	{shape: `new Uint8Array(bytes.buffer, 8)`, arrives: "89"},
	{shape: `new Uint8ClampedArray(bytes.buffer, 3, 1)`, arrives: "3"},
	{shape: `new Uint16Array(bytes.buffer, 2, 2)`, arrives: "2345"},
	{shape: `new Int32Array(bytes.buffer, 4, 1)`, arrives: "4567"},
	{shape: `new Float64Array(bytes.buffer, 0, 1)`, arrives: "01234567"},
	{shape: `new BigUint64Array(bytes.buffer, 0, 1)`, arrives: "01234567"},
	{shape: `new DataView(bytes.buffer, 1, 3)`, arrives: "123"},
	{shape: `new (class extends Uint8Array {})(bytes.buffer, 9)`, arrives: "9"},
	{shape: `Object.defineProperty(bytes.slice(0, 2), 'byteLength', { value: 1e9 })`, arrives: "01"},
	{shape: `Object.defineProperty(bytes.slice(0, 2), 'buffer', { value: new ArrayBuffer(1) })`, arrives: "01"},
	{shape: `Object.defineProperty(bytes.slice(0, 2), 'buffer', { get() { throw new Error('mine'); } })`, fails: "mine"},
	{shape: `{ buffer: new ArrayBuffer(4) }`, arrives: `{"buffer":{}}`},
	{shape: `{ buffer: bytes.buffer, byteOffset: 100, byteLength: 4 }`, arrives: `{"buffer":{},"byteOffset":100,"byteLength":4}`},
	{shape: `{ buffer: bytes.buffer, byteOffset: 0, byteLength: -4 }`, arrives: `{"buffer":{},"byteOffset":0,"byteLength":-4}`},
	{shape: `{ byteLength: 1 }`, arrives: `{"byteLength":1}`},
	{shape: `Object.create(DataView.prototype)`, fails: "TypeError"},
	{shape: `detached`, fails: "detached ArrayBuffer"},
	{shape: `new Uint8Array(detached2)`, fails: "detached"},
	{shape: `new Map([[1, 2]])`, fails: "it is a function, a promise, a Map or a Set"},
	{shape: `new Set([1])`, fails: "it is a function, a promise, a Map or a Set"},
	{shape: `{ tags: Object.assign(new Map(), { toJSON: () => ({}) }), none: {} }`, arrives: `{"tags":{},"none":{}}`},
	{shape: `viewOfDetached`, fails: "detached ArrayBuffer"},
}

// withBytes gives the script what the shapes refer to.
func withBytes(t *testing.T) *script {
	t.Helper()
	s := newScript(t).begin()
	s.mustRun(`
		globalThis.bytes = new Uint8Array([48, 49, 50, 51, 52, 53, 54, 55, 56, 57]);
		globalThis.detached = new ArrayBuffer(8), globalThis.detached2 = new ArrayBuffer(8);
		globalThis.viewOfDetached = new Uint8Array(detached);
		globalThis.conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 });
		await conn.createTopic('` + t.Name() + `');
		globalThis.p = conn.producer('` + t.Name() + `');
		globalThis.c = conn.consumer('` + t.Name() + `', { group: 'g' });
		await c.ready();`)
	for _, name := range []string{"detached", "detached2"} {
		ab, ok := s.rt.Get(name).Export().(sobek.ArrayBuffer)
		if !ok || !ab.Detach() {
			t.Fatal("cannot be detached")
		}
	}
	return s
}

func TestAnyShapeIsSentOrRefused(t *testing.T) {
	s := withBytes(t)
	for _, part := range []struct{ name, message, received string }{
		{"body", "{ body: %s }", "m.text()"},
		{"key", "{ body: '', key: %s }", "m.key"},
		{"header", "{ body: '', headers: { a: %s } }", "m.headers.a"},
		{"in an array", "[{ body: %s }]", "m.text()"},
	} {
		for _, c := range shapes {
			got, err := s.run(fmt.Sprintf("await p.send("+part.message+"); const [m] = await c.receive(); await c.ack(m); return "+part.received, c.shape))
			switch {
			case c.shape == "null" && strings.Contains(part.message, "body: %s"):
				if err == nil || !strings.Contains(err.Error(), "body: null: memory has no messages without a body (conn.features.tombstones is false)") {
					t.Errorf("%s null: %v", part.name, err)
				}
			case part.name == "key" && (c.shape == "null" || c.shape == "undefined"): // as if not given
				if err != nil || got != nil {
					t.Errorf("%s %s: %v, %v", part.name, c.shape, got, err)
				}
			case c.fails == "":
				if err != nil || got != c.arrives {
					t.Errorf("%s %s: %q, %v; want %q", part.name, c.shape, got, err, c.arrives)
				}
			case err == nil:
				t.Errorf("%s %s: %q was sent; want an error with %q", part.name, c.shape, got, c.fails)
			case !strings.Contains(err.Error(), c.fails):
				t.Errorf("%s %s: %v; want %q", part.name, c.shape, err, c.fails)
			}
		}
	}
}

func TestAnyShapeOfMessageIsSentOrRefused(t *testing.T) {
	s := withBytes(t)
	for _, c := range []struct{ shape, arrives, fails string }{
		{shape: `bytes.subarray(1, 3)`, arrives: "12"},
		{shape: `new DataView(bytes.buffer, 1, 3)`, arrives: "123"},
		{shape: `bytes.buffer`, arrives: "0123456789"},
		{shape: `new Proxy({ body: 'x' }, {})`, arrives: "x"},
		{shape: `Object.create({ body: 'x' })`, arrives: "x"},
		{shape: `new (class { get body() { return 'x'; } })()`, arrives: "x"},
		{shape: `{ body: 'x', headers: null, key: null }`, arrives: "x"},
		{shape: `{ body: 'x', headers: new Proxy({ a: 'b' }, {}) }`, arrives: "x"},
		{shape: `{ body: 'x', get headers() { throw new Error('mine'); } }`, fails: "mine"},
		{shape: `{ get body() { throw new Error('mine'); } }`, fails: "mine"},
		{shape: `{ body: 'x', headers: 'a: b' }`, fails: "headers: an object of names and values is needed"},
		{shape: `{ body: 'x', headers: ['a'] }`, fails: "headers: an object of names and values is needed"},
		{shape: `{ body: 'x', headers: new Map([['a', 'b']]) }`, fails: "headers: an object of names and values is needed"},
		{shape: `{ body: 'x', headers: bytes }`, fails: "headers: an object of names and values is needed"},
		{shape: `{ body: 'x', headers: bytes.buffer }`, fails: "headers: an object of names and values is needed"},
		{shape: `{ body: 'x', headers: () => 1 }`, fails: "headers: an object of names and values is needed"},
		{shape: `{ body: 'x', headers: { a: null } }`, fails: `header "a": it is missing`},
		{shape: `{ buffer: new ArrayBuffer(4) }`, fails: `a message is an object with "body"`},
		{shape: `{ buffer: bytes.buffer, byteOffset: 100, byteLength: 4 }`, fails: `a message is an object with "body"`},
		{shape: `{ text: 'hi' }`, fails: `a message is an object with "body"`},
		{shape: `{}`, fails: `a message is an object with "body"`},
		{shape: `new Map()`, fails: `a message is an object with "body"`},
		{shape: `Object.setPrototypeOf(new Uint8Array(1), null)`, fails: `a message is an object with "body"`},
		{shape: `detached`, fails: "detached ArrayBuffer"},
		{shape: `viewOfDetached`, fails: "detached ArrayBuffer"},
		{shape: `undefined`, fails: "it is missing"},
		{shape: `[]`, fails: "the array of messages is empty"},
		{shape: `[, 'x']`, fails: "message 0: it is missing"},
		{shape: `['x', , 'x']`, fails: "message 1: it is missing"},
		{shape: `[['x']]`, fails: `message 0: a message is an object with "body"`},
		{shape: `(() => { const a = ['x']; a.length = 4294967295; return a; })()`, fails: "an array of 4294967295 messages: send at most"},
		{shape: `new Array(4097)`, fails: `send at most 4096 at once, or raise the producer's option "maxInFlight"`},
		{shape: `new Array(4096)`, fails: "message 0: it is missing"},
		{shape: `(() => { const a = []; a[3000] = 'x'; return a; })()`, fails: "message 0: it is missing"},
		{shape: `(() => { const a = ['x', { get body() { a.length = 0; return 'y'; } }, 'z']; return a; })()`, fails: "message 2: it is missing"},
	} {
		got, err := s.run("await p.send(" + c.shape + "); const [m] = await c.receive(); await c.ack(m); return m.text()")
		switch {
		case c.fails == "":
			if err != nil || got != c.arrives {
				t.Errorf("%s: %q, %v; want %q", c.shape, got, err, c.arrives)
			}
		case err == nil:
			t.Errorf("%s: %q was sent; want an error with %q", c.shape, got, c.fails)
		case !strings.Contains(err.Error(), c.fails):
			t.Errorf("%s: %v; want %q", c.shape, err, c.fails)
		}
	}
}

// What is given for options may be anything, itself included.
func TestAnyShapeOfOptionsIsRefused(t *testing.T) {
	const cyclic = `(() => { const a = { b: [] }; a.a = a; a.b.push(a.b, a); return a; })()`
	for call, want := range map[string]string{
		`broker.connect('memory://127.0.0.1:7', { drainTimeout: %s })`: `option "drainTimeout": an object is not a duration`,
		`broker.connect('memory://127.0.0.1:7', { token: %s })`:        `option "token": the value given is not a string`,
		`broker.connect('memory://127.0.0.1:7', { profile: %s.b })`:    `option "profile": a list is not one of`,
		`broker.connect('memory://127.0.0.1:7', { profile: %s })`:      `option "profile": an object is not one of`,
		`broker.connect(%s)`:                                                                       "the URL must be a string",
		`broker.connect(['memory://user:s3cret@h', %s])`:                                           "the URL must be a string",
		`broker.connect('memory://127.0.0.1:7').require({ order: %s })`:                            "order: an object (has topic)",
		`broker.connect('memory://127.0.0.1:7').require({ settle: %s.b })`:                         "settle: a list (has [ack requeue reject])",
		`broker.connect('memory://127.0.0.1:7').producer('t', { maxInFlight: %s })`:                `option "maxInFlight": an object is not an integer`,
		`broker.connect('memory://127.0.0.1:7').producer('t', { stamp: %s })`:                      `option "stamp": an object is not a string`,
		`broker.connect('memory://127.0.0.1:7').producer('t').produce({ rate: %s, count: 1 })`:     `option "rate": an object is not a number`,
		`broker.connect('memory://127.0.0.1:7').producer('t').produce({ stages: %s })`:             `option "stages": an object is not an array`,
		`broker.connect('memory://127.0.0.1:7').producer('t').produce({ payload: %s.b })`:          `option "payload": a list is not an object`,
		`broker.connect('memory://127.0.0.1:7').consumer('t', { start: %s })`:                      `option "start": an object is not one of new, earliest`,
		`broker.connect('memory://127.0.0.1:7').consumer('t').receive({ wait: %s })`:               `option "wait": an object is not a duration`,
		`broker.connect('memory://127.0.0.1:7').consumer('t').consume({ ack: %s, count: 1 })`:      `option "ack": an object is not a string`,
		`broker.connect('memory://127.0.0.1:7').consumer('t').nack([], { requeue: true, a: %s })`:  `no option "a"`,
		`broker.connect('memory://127.0.0.1:7').createTopic('t', { partitions: %s })`:              `option "partitions": an object is not an integer`,
		`broker.connect('memory://127.0.0.1:7', { get token() { throw new Error('mine' + %s) } })`: "mine",
		`broker.connect('memory://127.0.0.1:7', new Proxy({}, %s))`:                                "options must be an object",
	} {
		s := newScript(t)
		_, err := s.run("return " + fmt.Sprintf(call, cyclic))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %q", call, err, want)
		}
	}
}
