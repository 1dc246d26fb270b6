package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// verdictOn is what a test expects of a threshold.
type verdictOn struct {
	metric, source string
	held           bool
	because        string // "" where it is judged
}

// busyMachine is why a threshold on a latency cannot be judged where the machine is too busy for the test.
var busyMachine = regexp.MustCompile("the latencies of this run are not valid|is delay of the load generator")

// kept tells whether a run kept its thresholds, as far as a busy machine lets them be judged.
func kept(r harness.Result) bool {
	if r.Code != 99 {
		return r.Code == 0
	}
	said := strings.Join(strings.Fields(r.Stdout), " ") // as it was before it was broken into lines
	_, reasons, _ := strings.Cut(said, "verdict: NOT VALID")
	reasons, _, _ = strings.Cut(reasons, " note: ")
	unjudged := 0
	for reason := range strings.SplitSeq(reasons, " because ") {
		if !strings.Contains(reason, " could not be judged, and fails: ") {
			continue
		}
		if !busyMachine.MatchString(reason) {
			return false
		}
		unjudged++
	}
	return unjudged > 0 && strings.Count(r.Stdout, "✗") <= unjudged
}

// check compares what the result says of thresholds, what k6 made of them, and how k6 ended. One that holds on an idle machine may be
// beyond judging on a busy one.
func check(t *testing.T, o harness.Outcome, r harness.Result, want ...verdictOn) {
	t.Helper()
	if len(o.Result.Thresholds) != len(want) {
		t.Errorf("%d thresholds, want %d: %+v", len(o.Result.Thresholds), len(want), o.Result.Thresholds)
	}
	failed := false
	for _, w := range want {
		i := slices.IndexFunc(o.Result.Thresholds, func(t summary.Threshold) bool { return t.Metric == w.metric && t.Source == w.source })
		if i < 0 {
			t.Errorf("%s %s is not in the result: %+v", w.metric, w.source, o.Result.Thresholds)
			continue
		}
		got := o.Result.Thresholds[i]
		if w.because == "" && !got.Judged && busyMachine.MatchString(got.Why) {
			t.Logf("%s %s: this machine is too busy to judge it: %s", w.metric, w.source, got.Why)
			w.held, w.because = false, got.Why
		}
		failed = failed || !w.held
		if got.Held != w.held || got.Judged != (w.because == "") || !strings.Contains(got.Why, w.because) {
			t.Errorf("%s %s: %+v, want held %v, %q", w.metric, w.source, got, w.held, w.because)
		}
		if k6 := o.Metrics[w.metric].Thresholds[w.source]; k6.OK != w.held {
			t.Errorf("%s %s: k6 says %v", w.metric, w.source, k6.OK)
		}
		unjudged := slices.ContainsFunc(o.Result.Verdict.Reasons, func(r summary.Reason) bool {
			return r.Code == "threshold-not-judged" && r.Values["metric"] == w.metric && r.Values["source"] == w.source
		})
		if unjudged == got.Judged {
			t.Errorf("%s %s is judged: %v; the verdict says %+v", w.metric, w.source, got.Judged, o.Result.Verdict.Reasons)
		}
	}
	if code := map[bool]int{true: 99, false: 0}[failed]; r.Code != code {
		t.Errorf("exit code %d, want %d\n%v", r.Code, code, r)
	}
}

// What could be asked, and gave green where nothing had been measured.
func TestAThresholdThatCannotBeJudgedFails(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   []verdictOn
	}{
		"every send fails": {`
const p = broker.connect('embedded:').producer('absent');
export const options = { iterations: 30, thresholds: {
  broker_lost: ['count==0'], broker_duplicated: ['count==0'], broker_e2e_latency: ['p(99)<50'],
  broker_publish_latency: ['p(99)<50', 'max<50', 'avg<50'], broker_valid: ['value==1'], 'broker_errors{op:send}': ['count==30'],
  'broker_errors{kind:timeout}': ['count==0'],
} };
export default async function () { await p.send('x').catch(() => {}); }`, []verdictOn{
			{"broker_lost", "count==0", false, "no such group"},
			{"broker_duplicated", "count==0", false, "no such group"},
			{"broker_e2e_latency", "p(99)<50", false, "no samples"},
			{"broker_publish_latency", "p(99)<50", false, "no samples"},
			{"broker_publish_latency", "max<50", false, "no samples"},
			{"broker_publish_latency", "avg<50", false, "no samples"},
			{"broker_valid", "value==1", false, ""},
		}},
		"nobody consumes": {`
const conn = broker.connect('embedded:');
const p = conn.producer('unheard'), c = conn.consumer('unheard', { group: 'g' });
export const options = { iterations: 100, thresholds: {
  broker_lost: ['count==0'], broker_e2e_latency: ['p(99)<50'], broker_received: ['count==0'], 'broker_received{topic:unheard}': ['count==0'],
} };
export async function setup() { await conn.createTopic('unheard'); }
export default async function () { await p.send('x'); }`, []verdictOn{
			{"broker_lost", "count==0", false, "no such group"},
			{"broker_e2e_latency", "p(99)<50", false, "no samples"},
		}},
		"the module is not used": {`
const p = broker.connect('embedded:').producer('unused');
export const options = { iterations: 1, thresholds: { broker_lost: ['count==0'], broker_e2e_latency: ['p(99)<50'] } };
export default function () {}`, []verdictOn{
			{"broker_lost", "count==0", false, "no such group"},
			{"broker_e2e_latency", "p(99)<50", false, "no samples"},
		}},
		"two groups of which one is idle, and a topic that is not there": {`
const conn = broker.connect('embedded:');
const p = conn.producer('one'), one = conn.consumer('one', { group: 'g' }), other = conn.consumer('two', { group: 'idle' });
export const options = { scenarios: { s: { executor: 'per-vu-iterations' } }, thresholds: {
  broker_lost: ['count==0'], 'broker_lost{topic:one}': ['count==0'], 'broker_lost{consumer_group:idle}': ['count==0'],
  'broker_lost{topic:nosuch}': ['count==0'], 'broker_e2e_latency{topic:nosuch}': ['max<50'], 'broker_sent{scenario:s}': ['count==50'],
  'broker_redelivered{consumer_group:idle}': ['count==0'], 'broker_foreign{topic:one}': ['count==0'],
} };
export async function setup() { for (const t of ['one', 'two']) await conn.createTopic(t); }
export default async function () {
  await one.ready(); await other.ready();
  for (let i = 0; i < 50; i++) await p.send('x');
  for (let n = 0; n < 50;) { const got = await one.receive({ max: 50, wait: '10s' }); n += got.length; await one.ack(got); }
}`, []verdictOn{
			{"broker_lost", "count==0", false, "two, idle: no message was expected"},
			{"broker_lost{topic:one}", "count==0", false, "the account of this run is not valid"},
			{"broker_lost{consumer_group:idle}", "count==0", false, "two, idle: no message was expected"},
			{"broker_lost{topic:nosuch}", "count==0", false, "no such group"},
			{"broker_e2e_latency{topic:nosuch}", "max<50", false, "no samples"},
			{"broker_redelivered{consumer_group:idle}", "count==0", false, "two, idle: nothing was received"},
		}},
		"few of one topic beside many of another": {`
const conn = broker.connect('embedded-nats:');
const many = conn.producer('many'), few = conn.producer('few');
export const options = { scenarios: { s: { executor: 'per-vu-iterations' } }, thresholds: {
  broker_publish_latency: ['p(99)<60000'], 'broker_publish_latency{topic:many}': ['p(99)<60000', 'p(99.9)<60000'],
  'broker_publish_latency{topic:few}': ['p(99)<60000', 'med<60000', 'max<60000'],
} };
export default async function () {
  for (let i = 0; i < 2000; i++) await many.send('x');
  for (let i = 0; i < 10; i++) await few.send('x');
}`, []verdictOn{
			{"broker_publish_latency", "p(99)<60000", true, ""},
			{"broker_publish_latency{topic:many}", "p(99)<60000", true, ""},
			{"broker_publish_latency{topic:many}", "p(99.9)<60000", false, "of 2000 samples 2 lie beyond p99.9"},
			{"broker_publish_latency{topic:few}", "p(99)<60000", false, "of 10 samples 0 lie beyond p99"},
			{"broker_publish_latency{topic:few}", "med<60000", false, "of 10 samples 5 lie beyond p50"},
			{"broker_publish_latency{topic:few}", "max<60000", true, ""},
		}},
		"both loops": {`
const p = broker.connect('embedded-nats:').producer('loops');
export const options = {
  scenarios: {
    open: { executor: 'open-arrival-rate', exec: 'send', rate: 200, duration: '2s', preAllocatedVUs: 5 },
    closed: { executor: 'per-vu-iterations', exec: 'closed' },
  },
  thresholds: {
    broker_publish_latency: ['p(95)<60000'], 'broker_publish_latency{loop:open}': ['p(95)<60000'], 'broker_publish_latency{loop:closed}': ['p(95)<60000'],
    broker_queue_wait: ['p(95)<60000', 'p(99)<60000', 'max<60000'], 'broker_queue_wait{scenario:closed}': ['max<60000'],
    'broker_arrivals{scenario:open}': ['count==400'], broker_queue_length: ['value==0'],
  },
};
export async function send() { await p.send('x'); }
export async function closed() { for (let i = 0; i < 400; i++) await p.send('x'); }`, []verdictOn{
			{"broker_publish_latency", "p(95)<60000", false, "name one by the tag loop"},
			{"broker_publish_latency{loop:open}", "p(95)<60000", true, ""},
			{"broker_publish_latency{loop:closed}", "p(95)<60000", true, ""},
			{"broker_queue_wait", "p(95)<60000", true, ""},
			{"broker_queue_wait", "p(99)<60000", false, "of 400 samples 4 lie beyond p99"},
			{"broker_queue_wait", "max<60000", true, ""},
			{"broker_queue_wait{scenario:closed}", "max<60000", false, "no samples"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o, r := harness.RunToOutcome(t, c.script)
			check(t, o, r, c.want...)
		})
	}
}

// Half of what a stream may hold is overwritten while nobody reads: that is lost, for its topic and for its group, and for nobody else.
func TestThresholdsOnTheAccount(t *testing.T) {
	o, r := harness.RunToOutcome(t, `
const conn = broker.connect('embedded:');
const p = conn.producer('sub'), c = conn.consumer('sub', { group: 'g' }), audit = conn.consumer('sub', { group: 'audit' });
export const options = { scenarios: { s: { executor: 'per-vu-iterations' } }, thresholds: {
  broker_lost: ['count==0', 'count==5', 'rate>0'], 'broker_lost{topic:sub}': ['count<5', 'count<=5'], 'broker_lost{consumer_group:g}': ['count==5'],
  'broker_lost{consumer_group:audit}': ['count==0'], broker_undelivered: ['count==0'], broker_duplicated: ['count==0'],
  'broker_received{consumer_group:audit}': ['count==10'], broker_valid: ['value==1'],
  'broker_e2e_latency{consumer_group:audit}': ['max<0.0001', 'min>=0'],
} };
export async function setup() { await conn.createTopic('sub', { maxMessages: 5 }); }
async function take(consumer, n) {
  while (n > 0) { const got = await consumer.receive({ max: n, wait: '10s' }); n -= got.length; await consumer.ack(got); }
}
export default async function () {
  await c.ready(); await audit.ready(); await c.close();
  for (let i = 0; i < 10; i++) { await p.send('x'); await take(audit, 1); }
  await take(c, 5);
}`)
	check(t, o, r,
		verdictOn{"broker_lost", "count==0", false, ""}, verdictOn{"broker_lost", "count==5", true, ""}, verdictOn{"broker_lost", "rate>0", true, ""},
		verdictOn{"broker_lost{topic:sub}", "count<5", false, ""}, verdictOn{"broker_lost{topic:sub}", "count<=5", true, ""},
		verdictOn{"broker_lost{consumer_group:g}", "count==5", true, ""}, verdictOn{"broker_lost{consumer_group:audit}", "count==0", true, ""},
		verdictOn{"broker_undelivered", "count==0", true, ""}, verdictOn{"broker_duplicated", "count==0", true, ""},
		verdictOn{"broker_valid", "value==1", o.Result.Verdict.Valid, ""},
		// Within what a broker can do nothing is that fast; and the samples are the group's own.
		verdictOn{"broker_e2e_latency{consumer_group:audit}", "max<0.0001", false, ""},
		verdictOn{"broker_e2e_latency{consumer_group:audit}", "min>=0", true, ""},
	)
}

// The summary shows the decision, and the terminal why.
func TestTheSummaryShowsTheDecision(t *testing.T) {
	r := harness.K6(t, nil, "run", "--quiet", harness.Script(t, `
import broker from 'k6/x/broker';
const p = broker.connect('embedded:').producer('absent');
export const options = { iterations: 30, thresholds: { broker_e2e_latency: ['p(99)<50'], broker_sent: ['count==30'] } };
export default async function () { await p.send('x').catch(() => {}); }`))
	for _, want := range []string{
		"✗ 'p(99)<50'", "✓ 'count==30'", "because threshold broker_e2e_latency p(99)<50 could not be judged, and fails: there are no samples",
	} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q in\n%v", want, r)
		}
	}
	if r.Code != 99 {
		t.Error(r)
	}
}

// A tag of the script's own, whatever its name, and one of the whole test are no mistakes.
func TestThresholdsOnTagsOfTheScript(t *testing.T) {
	o, r := harness.RunToOutcome(t, `
import exec from 'k6/execution';
const conn = broker.connect('embedded:');
const p = conn.producer('tagged'), c = conn.consumer('tagged', { group: 'g' });
export const options = { tags: { team: 'a' }, scenarios: { s: { executor: 'per-vu-iterations', tags: { size: 'small' } } }, thresholds: {
  'broker_sent{kind:order}': ['count==7'], 'broker_sent{size:small}': ['count==10'], 'broker_lost{team:a}': ['count==0'], 'broker_lost{team:b}': ['count==0'],
  'broker_publish_latency{kind:order,size:small}': ['max<60000'], 'broker_publish_latency{kind:refund}': ['max<60000'],
} };
export async function setup() { await conn.createTopic('tagged'); }
export default async function () {
  await c.ready();
  for (let i = 0; i < 10; i++) { exec.vu.metrics.tags.kind = i < 7 ? 'order' : 'bill'; await p.send('x'); }
  for (let n = 0; n < 10;) { const got = await c.receive({ max: 10, wait: '10s' }); n += got.length; await c.ack(got); }
}`)
	check(t, o, r,
		verdictOn{"broker_lost{team:a}", "count==0", true, ""}, verdictOn{"broker_lost{team:b}", "count==0", false, "no such group"},
		verdictOn{"broker_publish_latency{kind:order,size:small}", "max<60000", true, ""},
		verdictOn{"broker_publish_latency{kind:refund}", "max<60000", false, "no samples"},
	)
}
