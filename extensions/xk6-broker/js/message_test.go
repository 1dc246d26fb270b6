package js

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/faulty"
)

// Of a broker that keeps no keys the driver may route by them all the same; what to do with one is the driver's to decide.
func TestTheKeyIsTheDriversWhateverTheBrokerKeeps(t *testing.T) {
	s := newScript(t).begin()
	address, err := driver.ParseURL("discard://h", nil)
	if err != nil {
		t.Fatal(err)
	}
	if address.Driver.Features.Key {
		t.Fatal("the broker keeps keys, so that this test shows nothing")
	}
	v, err := s.rt.RunString("({ key: 'eu.x', body: 'b' })")
	if err != nil {
		t.Fatal(err)
	}
	c := &connection{in: s.module.NewModuleInstance(s).(*instance), address: address}
	if m, err := c.message(v); err != nil || string(m.Key) != "eu.x" || string(m.Body) != "b" {
		t.Errorf("the driver is given key %q and body %q, %v", m.Key, m.Body, err)
	}
}

// Whatever bytes a key, a header or a body has, the script gets them as they are, and what it sends on is the same.
func TestBytesReachTheScriptUnharmed(t *testing.T) {
	driver.Register(faulty.New(faulty.Config{Name: "bytes", Features: faulty.Log()}).Driver())
	s := newScript(t).begin()
	got := s.mustRun(`
		const conn = broker.connect('bytes://127.0.0.1:7', { drainTimeout: 1 });
		await conn.createTopic('t');
		const shown = (v) => v === null ? 'null' : typeof v === 'string' ? JSON.stringify(v) : new Uint8Array(v).join('.');
		const producer = conn.producer('t'), consumer = conn.consumer('t', { group: 'g', start: 'earliest' });
		const raw = new Uint8Array([0, 0, 0, 0, 7, 255]).buffer;
		await producer.send([
			{ body: raw, key: raw, headers: { raw, text: 'ä' } },
			{ body: null, key: 'k' },
			{ body: '', key: '\u0000' },
		]);
		const seen = [];
		for (let round = 0; round < 2; round++) {
			for (let n = 0; n < 3;) {
				for (const m of await consumer.receive({ max: 3 })) {
					n++;
					seen.push([m.body, m.key, m.headers.raw, m.headers.text].map((v) => v === undefined ? '-' : shown(v)).join(' '));
					if (round === 0) await producer.send({ body: m.body, key: m.key, headers: m.headers });
				}
			}
		}
		return seen;`)
	once := []any{`0.0.0.0.7.255 0.0.0.0.7.255 0.0.0.0.7.255 "ä"`, `null "k" - -`, ` "\u0000" - -`}
	if want := fmt.Sprint(append(once, once...)); fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := s.run(`const conn = broker.connect('bytes://127.0.0.1:7', { drainTimeout: 1 }); await conn.producer('t', { stamp: 'body' }).send({ body: null })`); err == nil ||
		!strings.Contains(err.Error(), `body: null: there is a stamp in each body, by the producer's option "stamp"`) {
		t.Errorf("a tombstone with a stamp in its body: %v", err)
	}
}
