package k6

import (
	"strings"
	"testing"
)

// What is acknowledged must be messages, and this consumer's.
func TestOnlyTheConsumersOwnMessagesAreSettled(t *testing.T) {
	s := withBytes(t)
	s.mustRun(`
		globalThis.other = conn.consumer('` + t.Name() + `', { group: 'h' });
		await other.ready();
		await p.send(['a', 'b', 'c']);
		globalThis.mine = await c.receive({ max: 3 });
		globalThis.theirs = await other.receive({ max: 3 });`)
	const none = "a message or an array of messages that this consumer has received is needed"
	for call, want := range map[string]string{
		`c.ack()`:                              "ack: " + none,
		`c.ack({})`:                            "ack: " + none,
		`c.ack('x')`:                           "ack: " + none,
		`c.ack(bytes)`:                         "ack: " + none,
		`c.ack({ buffer: bytes.buffer })`:      "ack: " + none,
		`c.ack(new Proxy(mine[0], {}))`:        "ack: " + none,
		`c.ack({ get a() { throw 1; } })`:      "ack: " + none,
		`c.ack([mine[0], {}])`:                 "ack: message 1: " + none,
		`c.ack([mine[0], , mine[1]])`:          "ack: message 1: " + none,
		`c.ack([mine])`:                        "ack: message 0: " + none,
		`c.ack(new Array(4294967295))`:         "ack: message 0: " + none,
		`c.ack(theirs)`:                        "ack: message 0: " + none,
		`c.ack(theirs[0])`:                     "ack: " + none,
		`c.ack([mine[0], theirs[0]])`:          "ack: message 1: " + none,
		`c.nack(theirs)`:                       "nack: message 0: " + none,
		`c.reject(theirs)`:                     "reject: message 0: " + none,
		`c.reply(theirs[0], 'x')`:              "reply: " + none,
		`c.reply({}, 'x')`:                     "reply: " + none,
		`c.reply(mine[0], { text: 'x' })`:      `reply: a message is an object with "body"`,
		`c.reply(mine[0], viewOfDetached)`:     "detached ArrayBuffer",
		`p.request([mine[0], mine[1]])`:        "one message at a time",
		`p.request(new Array(4294967295))`:     "send at most",
		`p.request({ body: Symbol.iterator })`: "it is a symbol",
	} {
		if _, err := s.run("await " + call); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", call, err, want)
		}
	}
	s.mustRun(`await c.ack([]); await c.ack(mine.slice(1)); await other.ack(theirs);`)
	s.mustRun(`const all = ['a']; all.length = 1; await c.ack(mine[0])`)
	if left := s.mustRun(`return await conn.backlog('` + t.Name() + `', 'g') + await conn.backlog('` + t.Name() + `', 'h')`); left != int64(0) {
		t.Errorf("%v messages were not settled", left)
	}
}

// Where a broker knows no acknowledgements, what is given must be messages all the same.
func TestAnAckThatDoesNothingChecksWhatItIsGiven(t *testing.T) {
	s := newScript(t).begin()
	s.mustRun(`
		globalThis.conn = broker.connect('subject://127.0.0.1:7', { drainTimeout: 1 });
		globalThis.p = conn.producer('acks'), globalThis.c = conn.consumer('acks'), globalThis.other = conn.consumer('acks', { prefetch: 1 });
		await conn.createTopic('acks');
		await c.ready(), await other.ready();
		await p.send('x');
		globalThis.mine = await c.receive(), globalThis.theirs = await other.receive();
		await c.ack(mine), await c.ack(mine[0]), await c.ack([]);`)
	for call, want := range map[string]string{
		`c.ack({})`: "ack: a message or", `c.ack([{}])`: "ack: message 0: a message or", `c.ack()`: "ack: a message or",
		`c.ack(theirs)`: "that this consumer has received",
	} {
		if _, err := s.run("await " + call); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", call, err, want)
		}
	}
}

// A message that was kept over a close belongs to its consumer, which is the broker's to judge:
// here it has given it to the next.
func TestAMessageKeptOverACloseIsTheConsumers(t *testing.T) {
	s := withBytes(t)
	_, err := s.run(`
		await p.send('x');
		const kept = await c.receive();
		await c.close();
		await c.ack(kept);`)
	if err == nil || !strings.Contains(err.Error(), "not unsettled at this consumer") {
		t.Errorf("%v; want the broker's own refusal", err)
	}
	s.mustRun(`const [m] = await c.receive(); if (m.text() !== 'x' || m.attempt !== 2) throw new Error(m.text()); await c.ack(m)`)
}
