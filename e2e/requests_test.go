package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// The loads of a published benchmark run by themselves, on a broker with request and reply of its own and on one without.
func TestTreat2016(t *testing.T) {
	for name, c := range map[string]struct {
		url, load string
		settings  []string
	}{
		"small, the broker's own": {"embedded-nats:", "A", []string{"RATE=200"}},
		"large, the broker's own": {"embedded-nats:", "E", []string{"RATE=10"}},
		"small, two topics":       {"embedded:", "A", []string{"RATE=200"}},
		"many connections":        {"embedded:", "D", []string{"RATE=200"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append([]string{"BROKER_URL=" + c.url, "LOAD=" + c.load, "SCALE=0.1", "WARMUP=1s", "BROKER_REPORT_DIR=" + t.TempDir()}, c.settings...)
			r := k6(t, env, "run", "--quiet", "../scenarios/studies/treat-2016.js")
			if raced && (r.code == 0 || r.code == 99) {
				return // it is several times slower, and need not keep its thresholds
			}
			if !r.kept() {
				t.Fatal(r)
			}
			for _, want := range []string{"corrected   uncorrected", "request latency (due → reply)", "request time (sent → reply)", "lost 0", " 0 failed"} {
				if !strings.Contains(r.stdout, want) {
					t.Errorf("no %q in\n%s", want, r.stdout)
				}
			}
			if !regexp.MustCompile(`p50 +[0-9.]+ ms\?? +[0-9.]+ ms`).MatchString(r.stdout) {
				t.Errorf("no median in\n%s", r.stdout)
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
