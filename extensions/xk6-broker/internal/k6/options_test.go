package k6

import (
	"strings"
	"testing"
)

// Whoever mistypes an option is shown all there are, those of this module first, and the one that
// was meant.
func TestAMistypedOption(t *testing.T) {
	for call, want := range map[string]string{
		`broker.connect('memory://h').consumer('t', { gruop: 'g' })`: `no option "gruop" here: known are connections, group, prefetch, ` +
			`confirmAcks, start, profile`,
		`broker.connect('memory://h').producer('t', { maxInflight: 1 })`:     `no option "maxInflight" here: known are connections, maxInFlight, stamp, profile`,
		`broker.connect('memory://h').producer('t', { workers: 1 })`:         `no option "workers" here: known are connections, maxInFlight, stamp, profile`,
		`broker.connect('waits://h').producer('t', { workers: 0 })`:          `option "workers": 0 is not an integer from 1 to 4096`,
		`broker.connect('memory://h').createTopic('t', { partition: 1 })`:    `no option "partition" here: known are partitions, replicas, profile`,
		`broker.connect('memory://h', { drainTimout: 1 })`:                   `no option "drainTimout": known are drainTimeout, warmup, profile, connectTimeout, token`,
		`broker.connect('memory://h?profil=durable')`:                        `no option "profil" in the URL: known are profile, connectTimeout, token`,
		`broker.connect('memory://h?drainTimeout=5s')`:                       `option "drainTimeout" belongs in the options beside the URL, and not in its query`,
		`broker.connect('memory://h').require({ reply: true })`:              `no feature "reply"`,
		`broker.connect('memory://h').consumer('t').receive({ wiat: '1s' })`: `no option "wiat": known are max, wait`,
		`broker.connect('mem://h')`:                                          `no driver for scheme "mem"`,
		`broker.connect('memroy://h')`:                                       `no driver for scheme "memroy"`,
	} {
		if _, err := newScript(t).run(call); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", call, err, want)
		}
	}
}

// What would be guessed at length is said at once.
func TestMistakesWithARemedy(t *testing.T) {
	const consumer = "const conn = broker.connect('memory://127.0.0.1:7', { drainTimeout: 1 }); const c = conn.consumer('t', { group: 'g' });"
	for call, want := range map[string]string{
		consumer + `await conn.createTopic('t'); await c.ack(c.receive({ wait: 1 }))`:        "messages that this consumer has received is needed",
		consumer + `await conn.createTopic('t'); await c.reply(c.receive({ wait: 1 }), 'x')`: "messages that this consumer has received is needed",
		consumer + `await c.ack({})`:                                  "a message or an array of messages that this consumer has received is needed",
		consumer + `await conn.producer('absent').send('x')`:          `is there a topic "absent"? createTopic in setup makes it (not_found)`,
		consumer + `await conn.consumer('absent').ready()`:            `is there a topic "absent"? createTopic in setup makes it (not_found)`,
		`broker.connect('subject://h').consumer('t', { group: 'g' })`: "subject has no groups: leave group out",
	} {
		if _, err := newScript(t).begin().run(call); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", call, err, want)
		}
	}
}
