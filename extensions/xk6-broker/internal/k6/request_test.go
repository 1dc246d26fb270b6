package k6

import (
	"context"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
)

// A script asks and answers in the same words, whether the broker has request and reply of its own
// or not.
func TestRequestAndReply(t *testing.T) {
	for scheme, named := range map[string]string{"memory": "", "subject": "to subject-questions-replies-"} {
		t.Run(scheme, func(t *testing.T) {
			s := newScript(t).begin()
			var over context.CancelFunc
			s.ctx, over = context.WithCancel(s.ctx)
			got := s.mustRun(`
				const conn = broker.connect('` + scheme + `://127.0.0.1:7');
				conn.require({ requests: true });
				await conn.createTopic('` + scheme + `-questions');
				const asks = conn.producer('` + scheme + `-questions'), answers = conn.consumer('` + scheme + `-questions');
				await answers.ready();
				const asked = ['one', 'two'].map((body) => asks.request({ body, headers: { a: 'b' } }, { timeout: '10m' }));
				for (const _ of asked) {
					const [m] = await answers.receive({ max: 1, wait: '10m' });
					if (m.headers.a !== 'b') throw new Error(JSON.stringify(m.headers));
					if (m.headers['reply-to'] !== undefined) globalThis.to = 'to ' + m.headers['reply-to'];
					await answers.reply(m, { body: 'to ' + m.text(), headers: { c: 'd' } });
				}
				const replies = await Promise.all(asked);
				return [...replies.map((r) => r.text() + r.headers.c), globalThis.to].join(', ');`)
			if text, _ := got.(string); !strings.HasPrefix(text, "to oned, to twod, "+named) {
				t.Errorf("%v", got)
			}
			over() // the VU's activation
			s.module.run.finish()
			result := s.module.run.buildResult()
			if len(result.Topics) != 1 {
				t.Fatalf("%d topics have an account", len(result.Topics))
			}
			topic := result.Topics[0]
			if h := topic.Trends[recording.RequestLatency.String()]; h == nil || h.Count() != 2 {
				t.Errorf("%v", topic.Trends)
			}
			if len(topic.Options["replies"]) != len(strings.Fields(named))/2 {
				t.Errorf("%v", topic.Options)
			}
		})
	}
}

// What cannot be answered says why, and what is not answered is an error that says so.
func TestRequestsThatGoWrong(t *testing.T) {
	const conn = `const conn = broker.connect('subject://127.0.0.1:7'); await conn.createTopic('t'); const p = conn.producer('t');`
	for call, want := range map[string]string{
		`await p.request('?', { timeout: '20ms' })`:                       "(timeout)",
		`await p.request(['?', '!'])`:                                     "one message at a time",
		`await p.request({ body: '?', headers: { 'reply-to': 'me' } })`:   `header "reply-to"`,
		`await conn.producer('t', { replyTopic: 'absent' }).request('?')`: "topic absent for replies could not be read",
		`const c = conn.consumer('t'); await c.ready(); await p.send('?'); const [m] = await c.receive({ wait: '10m' });
			await c.reply(m, 'x').finally(() => c.close())`: "the message asks for no reply",
		`broker.connect('memory://h').producer('t', { replyTopic: 'x' })`: `no option "replyTopic"`,
	} {
		s := newScript(t).begin()
		if _, err := s.run(conn + call); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", call, err, want)
		}
	}
}

// Before the test begins nothing can be asked.
func TestRequestInInit(t *testing.T) {
	if _, err := newScript(t).run(`await broker.connect('subject://127.0.0.1:7').producer('t').request('?')`); err == nil || !strings.Contains(err.Error(), "not in the init context") {
		t.Error(err)
	}
}
