package k6

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine"
)

// Of a broker that keeps no keys the driver may route by them all the same; what to do with one is
// the driver's to decide.
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

// Whatever bytes a key, a header or a body has, the script gets them as they are, and what it sends
// on is the same.
func TestBytesReachTheScriptUnharmed(t *testing.T) {
	driver.Register(memory.New(memory.Config{Name: "bytes", Features: memory.Log()}).Driver())
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

func TestPropertiesOfAMessage(t *testing.T) {
	d := memory.New(memory.Config{Name: "properties", Features: memory.Log()}).Driver()
	d.Options = append(d.Options,
		driver.Option{Name: "weight", Scope: driver.OnMessage, Type: driver.Int, Max: 9, Doc: "A weight."},
		driver.Option{Name: "until", Scope: driver.OnMessage | driver.OnProducer, Type: driver.Duration, Doc: "A time."})
	driver.Register(d)
	s := newScript(t).begin()
	read := func(url, message string) (driver.Values, error) {
		t.Helper()
		address, err := driver.ParseURL(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.rt.RunString("(" + message + ")")
		if err != nil {
			t.Fatal(err)
		}
		m, err := (&connection{in: s.module.NewModuleInstance(s).(*instance), address: address}).message(v)
		return m.Properties, err
	}
	if got, err := read("properties://h", "{ body: 'x', properties: { weight: 7, until: '2s' } }"); err != nil || fmt.Sprint(got) != "map[until:2s weight:7]" {
		t.Errorf("%v, %v", got, err)
	}
	for message, want := range map[string]string{
		"{ body: 'x', properties: { weight: 10 } }": `option "weight": 10 is not an integer, at least 0, at most 9`,
		"{ body: 'x', properties: { wieght: 1 } }":  `properties has no option "wieght" in "properties": known are partition, until, weight`,
		"{ body: 'x', properties: 5 }":              "properties: an object of names and values is needed",
	} {
		if _, err := read("properties://h", message); err == nil || err.Error() != want {
			t.Errorf("%s: %v", message, err)
		}
	}
	if _, err := read("discard://h", "{ body: 'x', properties: { weight: 1 } }"); err == nil || !strings.Contains(err.Error(), "messages of discard have none") {
		t.Error(err)
	}
	got := s.rt.ToValue(map[string]any{"m": s.module.NewModuleInstance(s).(*instance).newMessage(nil, &engine.Buffer{
		Messages: driver.Batch{{Properties: driver.Values{"weight": int64(7), "until": 2 * time.Second}}}, Stamped: []bool{false},
	}, 0)})
	s.set("received", got)
	if text := s.mustRun("return JSON.stringify([received.m.properties.weight, received.m.properties.until])"); text != "[7,2000]" {
		t.Error(text)
	}
}
