package processes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// role is the script of a process that only produces, or only consumes. Topics that
// nobody sends to are the signals by which the processes wait for one another: GIVES is given, and AWAITS are waited for.
const role = `
import broker from 'k6/x/broker';
const { BROKER_URL, TOPIC, ROLE, GIVES, AWAITS } = __ENV;
const conn = broker.connect(BROKER_URL);
const producer = conn.producer(TOPIC);
const consumer = ROLE === 'consume' ? conn.consumer(TOPIC, { group: 'workers', start: 'earliest' }) : null;
export const options = { scenarios: { all: { executor: 'per-vu-iterations', exec: ROLE, maxDuration: '1m' } } };
export async function setup() { await conn.createTopic(TOPIC); }
async function signals() {
  if (GIVES) await conn.createTopic(TOPIC + '-' + GIVES);
  for (const name of AWAITS ? AWAITS.split(',') : []) {
    while (!await conn.backlog(TOPIC + '-' + name, '').then(() => true, () => false)) await new Promise((done) => setTimeout(done, 100));
  }
}
export async function signal() { await signals(); }
export async function produce() {
  await producer.produce({ rate: 500, count: 500 });
  await signals();
  await producer.produce({ rate: 1000, count: 2000 });
}
export async function consume() {
  await consumer.ready();
  await signals();
  await consumer.consume({ count: Number(__ENV.COUNT || 0), duration: __ENV.DURATION || '1m' });
}
export { handleSummary } from 'k6/x/broker';
`

// processes are those of one test, with their results in one folder.
type processes struct {
	t      *testing.T
	dir    string
	script string
	topic  string
	env    []string
}

func newProcesses(t *testing.T, env ...string) *processes {
	t.Helper()
	dir := t.TempDir()
	id := fmt.Sprintf("%s-%d", filepath.Base(dir), time.Now().UnixNano())
	return &processes{t, dir, harness.Script(t, role), id, append([]string{"BROKER_URL=" + harness.URL(t, "BROKER_URL_NATS_JETSTREAM"), "BROKER_RUN=" + id, "TOPIC=" + id, "BROKER_REPORT_DIR=" + dir}, env...)}
}

// run runs the processes side by side, each named NAME:ROLE, to their end.
func (p *processes) run(each map[string][]string) {
	p.t.Helper()
	var all sync.WaitGroup
	for name, env := range each {
		all.Go(func() {
			if r := harness.K6(p.t, append(append([]string{"BROKER_REPORT_NAME=" + name}, p.env...), env...), "run", "--quiet", p.script); r.Code != 0 {
				p.t.Error(r)
			}
		})
	}
	all.Wait()
}

// merge merges some of them, and gives the account of the group.
func (p *processes) merge(out string, names []string, options ...string) (harness.Result, *summary.Group, summary.Verdict) {
	p.t.Helper()
	args := []string{"x", "broker", "merge", "-o", filepath.Join(p.dir, out)}
	for _, name := range names {
		args = append(args, filepath.Join(p.dir, name))
	}
	r := harness.K6(p.t, nil, append(args, options...)...)
	r.Stdout = strings.Join(strings.Fields(r.Stdout), " ") // as it was before it was broken into lines
	merged, err := summary.Read(filepath.Join(p.dir, out))
	if err != nil {
		p.t.Fatalf("%v\n%v", err, r)
	}
	if len(merged.Topics) != 1 || len(merged.Topics[0].Groups) != 1 {
		p.t.Fatal(r)
	}
	return r, &merged.Topics[0].Groups[0], merged.Verdict
}

// The consumers' process ends long before the producers'. What was sent since is not lost but uncertain: no process asked the broker afterwards.
func TestWhatTheBrokerStillHasIsNotLostInTheWhole(t *testing.T) {
	t.Parallel()
	p := newProcesses(t, "BROKER_PROCESSES=2")
	var producing sync.WaitGroup
	producing.Go(func() { p.run(map[string][]string{"producer": {"ROLE=produce", "AWAITS=ended"}}) })
	p.run(map[string][]string{"consumer": {"ROLE=consume", "COUNT=300"}})
	p.run(map[string][]string{"": {"ROLE=signal", "GIVES=ended"}})
	producing.Wait()
	r, g, v := p.merge("whole", []string{"consumer", "producer"})
	if g.Missing < 1000 || g.Lost != 0 || g.Uncertain != g.Missing || r.Code != 99 || !v.Has("uncertain", "no-backlog") {
		t.Errorf("%+v\n%v", g.Account, r)
	}
}

// Of three processes one is left out. What it received is not lost, whether it is known to be missing or not.
func TestMergeNoticesAMissingProcess(t *testing.T) {
	t.Parallel()
	p := newProcesses(t)
	p.run(map[string][]string{
		"one": {"ROLE=consume", "GIVES=one", "AWAITS=sending", "DURATION=8s"}, "two": {"ROLE=consume", "GIVES=two", "AWAITS=sending", "DURATION=8s"},
		"producer": {"ROLE=produce", "GIVES=sending", "AWAITS=one,two"},
	})
	fresh := 0
	for _, c := range []struct {
		names     []string
		options   []string
		code      int
		uncertain bool   // another process may have it
		says      string // in the output
		missing   string // a variant of process-missing
	}{
		{[]string{"one", "two", "producer"}, []string{"--processes", "3", "--allow-invalid", "--fail-if", "lost > 0"}, 0, false, "passed fail if lost > 0", ""},
		{[]string{"one", "producer"}, nil, 99, true, "", "unknown"},
		{[]string{"one", "producer"}, []string{"--processes", "3"}, 99, true, "", "absent"},
		{[]string{"one", "producer"}, []string{"--allow-invalid", "--fail-if", "lost > 0"}, 99, true, "cannot be decided", ""},
		{[]string{"one", "two"}, []string{"--processes", "3"}, 99, false, "", "unmerged"},
	} {
		fresh++
		r, g, v := p.merge(fmt.Sprint("out", fresh), c.names, c.options...)
		if r.Code != c.code || g.Lost != 0 || g.Why["missing-process"] > 0 != c.uncertain || !strings.Contains(r.Stdout, c.says) || c.missing != "" && !v.Has("process-missing", c.missing) {
			t.Errorf("%v %v: %+v\n%v", c.names, c.options, g.Account, r)
		}
		if c.code == 0 && (g.Received != 2500 || g.Missing != 0) {
			t.Errorf("%v: %+v", c.names, g.Account)
		}
	}
	summary := filepath.Join(p.dir, "two", summary.File)
	tomorrow, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	var text map[string]any
	if err := json.Unmarshal(tomorrow, &text); err != nil {
		t.Fatal(err)
	}
	text["started"] = "2199-01-01T00:00:00Z"
	if tomorrow, err = json.Marshal(text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(summary, tomorrow, 0o600); err != nil {
		t.Fatal(err)
	}
	one, two := filepath.Join(p.dir, "one"), filepath.Join(p.dir, "two")
	for want, args := range map[string][]string{
		"began after the others had ended": {one, two},
		"the limit of a merged result":     {one, two, "--fail-if", "lost > 1.1x"},
		"it is not understood":             {one, two, "--fail-if", "lost"},
		"--processes 1":                    {one, two, "--processes", "1"},
	} {
		if r := harness.K6(t, nil, append([]string{"x", "broker", "merge", "-o", filepath.Join(p.dir, "refused")}, args...)...); r.Code == 0 || r.Code == 99 || !strings.Contains(r.Stderr, want) {
			t.Errorf("want %q\n%v", want, r)
		}
	}
}

// Two processes of one test, each with a producer and a member of the group: neither knows what the other received, together they do.
func TestMergeOfTwoProcesses(t *testing.T) {
	t.Parallel()
	url := harness.URL(t, "BROKER_URL_NATS_JETSTREAM")
	dir := t.TempDir()
	run := fmt.Sprintf("BROKER_RUN=merge-%d", os.Getpid())
	topic := fmt.Sprintf("TOPIC=merge-%d", os.Getpid())
	ends := make(chan harness.Result, 2)
	for _, name := range []string{"one", "two"} {
		go func() {
			ends <- harness.K6(t, harness.Settings(dir, name, run, topic, "BROKER_URL="+url, "DURATION=4s"), "run", "--quiet", "--no-thresholds", harness.Quick)
		}()
	}
	for range 2 {
		if r := <-ends; r.Code != 0 {
			t.Error(r)
		}
	}
	out := filepath.Join(dir, "both")
	if r := harness.K6(t, nil, "x", "broker", "merge", filepath.Join(dir, "one"), filepath.Join(dir, "two"), "-o", out, "--processes", "2", "--allow-invalid"); r.Code != 0 || !strings.Contains(r.Stdout, "lost 0") {
		t.Fatal(r)
	}
	merged, err := summary.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	topicResult := merged.Topics[0]
	g := topicResult.Groups[0]
	// What is sent in the second in which the other process's member became ready is not expected of it.
	if topicResult.Counts["sent"] != 4000 || g.Received != 4000 || g.Missing != 0 || g.Foreign != 0 || topicResult.Trends["e2e_latency"].Count != 4000 {
		t.Errorf("%v, %+v", topicResult.Counts, g)
	}
	alone, err := summary.Read(filepath.Join(dir, "one"))
	if err != nil {
		t.Fatal(err)
	}
	if g := alone.Topics[0].Groups[0]; g.Foreign == 0 || g.Lost != 0 {
		t.Errorf("one alone: %+v", g)
	}
}
