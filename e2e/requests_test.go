package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// Replies are the requests, byte by byte, on a broker with request and reply of its own and on one without.
func TestEcho(t *testing.T) {
	for name, c := range map[string]struct {
		url      string
		settings []string
	}{
		"small, the broker's own": {"embedded-nats:", []string{"RATE=100"}},
		"large, the broker's own": {"embedded-nats:", []string{"RATE=10", "SIZE=1000000"}},
		"small, two topics":       {"embedded:", []string{"RATE=100"}},
		"many connections":        {"embedded:", []string{"RATE=100", "CONNECTIONS=25"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := harness.Scenario(t, "../scenarios/echo.js", append(c.settings, "BROKER_URL="+c.url, "DURATION=3s", "BROKER_WARMUP=1s", "TIMEOUT=60s")...)
			for _, want := range []string{"request latency (due → reply)", "request time (sent → reply)"} {
				if !strings.Contains(r.Stdout, want) {
					t.Errorf("no %q in\n%s", want, r.Stdout)
				}
			}
			if len(s.Topics) == 0 || len(s.Topics[0].Groups) != 1 || !complete(s.Topics[0].Groups[0], false) {
				t.Errorf("%+v\n%v", s.Topics, r)
			}
		})
	}
}

// A request that nobody answers is an error of the script, and the run tells of it: on the terminal, in the verdict, and to thresholds.
func TestRequestsThatNobodyAnswers(t *testing.T) {
	dir := t.TempDir()
	r := harness.K6(t, []string{"BROKER_REPORT_DIR=" + dir, "BROKER_REPORT_NAME=asked"}, "run", "--quiet", harness.Script(t, `
import broker from 'k6/x/broker';
const conn = broker.connect('embedded:'), asks = conn.producer('questions'), answers = conn.consumer('questions');
export const options = { iterations: 1, thresholds: { broker_unanswered: ['count==2'], broker_stray_replies: ['count==2'] } };
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
	if r.Code != 0 {
		t.Fatal(r)
	}
	read, err := summary.Read(filepath.Join(dir, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	if failed, _ := read.Verdict.Find("sends-failed", ""); failed.Values["sends"] != "requests" || failed.Values["count"] != 2.0 {
		t.Errorf("%+v", read.Verdict)
	}
	for _, want := range []string{"unanswered 2", "stray_replies 2", "lost 0"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q in\n%s", want, r.Stdout)
		}
	}
}
