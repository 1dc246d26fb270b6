package e2e

import (
	"strings"
	"testing"
)

// Replies are the requests, byte by byte, on a broker with request and reply of its own and on one without.
func TestEcho(t *testing.T) {
	for name, c := range map[string]struct {
		url      string
		settings []string
	}{
		"small, the broker's own": {"embedded-nats:", []string{"RATE=200"}},
		"large, the broker's own": {"embedded-nats:", []string{"RATE=10", "SIZE=1000000"}},
		"small, two topics":       {"embedded:", []string{"RATE=200"}},
		"many connections":        {"embedded:", []string{"RATE=200", "CONNECTIONS=25"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append([]string{"BROKER_URL=" + c.url, "DURATION=4s", "BROKER_WARMUP=1s", "BROKER_REPORT_DIR=" + t.TempDir()}, c.settings...)
			r := k6(t, env, "run", "--quiet", "../scenarios/echo.js")
			if raced && (r.code == 0 || r.code == 99) {
				return // it is several times slower, and need not keep its thresholds
			}
			if !r.kept() {
				t.Fatal(r)
			}
			for _, want := range []string{"request latency (due → reply)", "request time (sent → reply)", "lost 0"} {
				if !strings.Contains(r.stdout, want) {
					t.Errorf("no %q in\n%s", want, r.stdout)
				}
			}
		})
	}
}

// A request that nobody answers is an error of the script, and the run tells of it: on the terminal, in the verdict, and to thresholds.
func TestRequestsThatNobodyAnswers(t *testing.T) {
	r := k6(t, []string{"BROKER_REPORT_DIR=" + t.TempDir()}, "run", "--quiet", script(t, `
import broker from 'k6/x/broker';
const conn = broker.connect('embedded:'), asks = conn.producer('questions'), answers = conn.consumer('questions');
export const options = { iterations: 1, thresholds: { broker_unanswered: ['count==2'], broker_late_replies: ['count==1'], broker_duplicate_replies: ['count==1'] } };
export default async function () {
  await conn.createTopic('questions');
  await answers.ready();
  let late;
  for (const body of ['never', 'late']) {
    await asks.request(body, { timeout: '200ms' }).then(() => { throw new Error('a reply'); }, (e) => { if (e.kind !== 'timeout') throw e; });
    [late] = await answers.receive({ wait: '5s' });
    await answers.ack(late);
  }
  await answers.reply(late, 'now');
  await answers.reply(late, 'and now');
}
export { handleSummary } from 'k6/x/broker';`))
	if r.code != 0 {
		t.Fatal(r)
	}
	for _, want := range []string{"unanswered 2", "late_replies 1", "duplicate_replies 1", "requests without a reply in time: 2", "lost 0"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
}
