package k6

import (
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest/memory"
)

// What the broker tells is there, on both ends the same; what it does not tell is undefined, and
// not 0.
func TestAScriptSeesWhereMessagesAre(t *testing.T) {
	driver.Register(memory.New(memory.Config{Name: "places", Features: memory.Log()}).Driver())
	numbered := memory.Queue()
	numbered.Receipts = true
	driver.Register(memory.New(memory.Config{Name: "entries", Features: numbered}).Driver())
	for scheme, want := range map[string]string{
		"places":  `number [2,0] [2,0] true [2,1] [2,1] true`,
		"entries": `string [null,"0-0"] [null,"0-0"] undefined [null,"0-1"] [null,"0-1"] undefined`,
		"subject": `undefined [null,null] [null,null] undefined [null,null] [null,null] undefined`,
	} {
		s := newScript(t).begin()
		got := s.mustRun(`
			const before = Date.now() - 1;
			const conn = broker.connect('` + scheme + `://127.0.0.1:7', { drainTimeout: 1 });
			await conn.createTopic('t', { partitions: 3 });
			const consumer = conn.consumer('t', conn.features.groups ? { group: 'g', start: 'earliest' } : {});
			await consumer.ready();
			const producer = conn.producer('t');
			const message = (body) => conn.features.partitions ? { body, properties: { partition: 2 } } : { body };
			const receipts = [await producer.send(message('one')), ...await producer.send([message('two')])];
			const seen = [];
			while (seen.length < 2) seen.push(...await consumer.receive({ max: 2 }));
			const shown = [typeof seen[0].position];
			for (const [i, m] of seen.entries()) {
				shown.push(...[receipts[i], m].map((x) => JSON.stringify([x.partition, x.position])));
				shown.push(m.timestamp === undefined ? 'undefined' : Number.isFinite(m.timestamp) && m.timestamp > before && m.timestamp <= Date.now() + 1);
				for (const name of ['partition', 'position', 'timestamp']) {
					if (name in m !== (m[name] !== undefined)) shown.push(name + ' is in a message that has none');
				}
			}
			return shown.join(' ');`)
		if got != want {
			t.Errorf("%s: %v, want %s", scheme, got, want)
		}
	}
	s := newScript(t).begin()
	if _, err := s.run(`await broker.connect('subject://127.0.0.1:7', { drainTimeout: 1 }).producer('t').send({ body: 'x', properties: { partition: 2 } })`); err == nil {
		t.Error("a broker without partitions took the choice of one")
	}
}

// The reply to a request is kept nowhere.
func TestAReplyIsNowhere(t *testing.T) {
	s := newScript(t).begin()
	got := s.mustRun(`
		const conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 });
		await conn.createTopic('asked');
		const producer = conn.producer('asked'), consumer = conn.consumer('asked', { start: 'earliest', group: 'g' });
		const answer = producer.request('?');
		const [m] = await consumer.receive();
		await consumer.reply(m, '!');
		await consumer.ack(m);
		const reply = await answer;
		return [typeof m.position, typeof m.timestamp, reply.text(), reply.position, reply.timestamp, reply.partition].join(' ');`)
	if got != "number number !   " {
		t.Errorf("%q", got)
	}
}

func TestTimesInMillisecondsAreWhole(t *testing.T) {
	for ns, want := range map[int64]float64{
		1526919030474000000: 1526919030474, 1900000000001000000: 1900000000001, 1900000000001500000: 1900000000001.5, 1: 1e-6,
	} {
		if got := ms(ns); got != want {
			t.Errorf("%d ns: %v ms, want %v", ns, got, want)
		}
	}
}
