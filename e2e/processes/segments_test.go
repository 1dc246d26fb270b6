package processes

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/k6-operator/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// loop is a script of loops. LOAD is what produce is given. With ANEW setup makes the topic anew and fills it, and teardown deletes it.
const loop = `
import broker from 'k6/x/broker';
const { BROKER_URL, TOPIC, LOAD, EXECUTOR, ANEW } = __ENV;
const conn = broker.connect(BROKER_URL);
const producer = conn.producer(TOPIC);
const consumer = conn.consumer(TOPIC, { group: 'workers', start: 'earliest' });
export const options = {
  scenarios: {
    consume: { executor: 'consumers', exec: 'consume' },
    produce: { executor: EXECUTOR || 'producers', exec: 'produce' },
  },
};
export async function setup() {
  if (ANEW) await conn.deleteTopic(TOPIC).catch((error) => { if (error.kind !== 'not_found') throw error; });
  await conn.createTopic(TOPIC);
  if (ANEW) await producer.produce({ count: 1000, rate: 20000 });
}
export async function produce() { await producer.produce(JSON.parse(LOAD)); }
export async function consume() { await consumer.consume({ consumers: 2 }); }
export async function teardown() { if (ANEW) await conn.deleteTopic(TOPIC); }
export { handleSummary } from 'k6/x/broker';
`

// divided are processes of a test that have its execution segments, as k6-operator starts them.
type divided struct {
	t     *testing.T
	dir   string
	topic string
	env   []string
	ended []harness.Result
}

// divide runs a script in so many processes to their end.
func divide(t *testing.T, script string, processes int32, env ...string) *divided {
	t.Helper()
	d := &divided{t: t, dir: t.TempDir(), topic: fmt.Sprintf("segments-%d", time.Now().UnixNano())}
	d.env = append([]string{"BROKER_URL=" + harness.URL(t, "BROKER_URL_NATS_JETSTREAM"), "TOPIC=" + d.topic, "BROKER_REPORT_DIR=" + d.dir}, env...)
	job := corev1.EnvVar{Name: "BROKER_REPORT_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['job-name']"}}}
	test := &v1alpha1.TestRun{
		ObjectMeta: metav1.ObjectMeta{Name: "divided"},
		Spec: v1alpha1.TestRunSpec{
			Parallelism: processes, Script: v1alpha1.K6Script{LocalFile: script}, Arguments: "--no-thresholds",
			Runner: v1alpha1.Pod{Env: []corev1.EnvVar{{Name: "BROKER_RUN", Value: d.topic}, job}},
		},
	}
	c := coordinate(t, int(processes), "--allow-invalid")
	d.ended = operate(t, test, append(slices.Clone(d.env), c.env())...).wait()
	if r := c.wait(); r.Code != 0 {
		t.Error(r)
	}
	return d
}

// of is the result of one process, from 1.
func (d *divided) of(process int) *summary.Summary {
	d.t.Helper()
	s, err := summary.Read(filepath.Join(d.dir, fmt.Sprintf("divided-%d", process)))
	if err != nil {
		d.t.Fatal(err, d.ended[process-1])
	}
	return s
}

// merge puts together what some processes left.
func (d *divided) merge(processes ...int) (harness.Result, *summary.Summary) {
	d.t.Helper()
	out := filepath.Join(d.t.TempDir(), "whole")
	args := []string{"x", "broker", "merge", "-o", out}
	for _, process := range processes {
		args = append(args, filepath.Join(d.dir, fmt.Sprintf("divided-%d", process)))
	}
	r := harness.K6(d.t, nil, args...)
	whole, err := summary.Read(out)
	if err != nil {
		d.t.Fatal(err, r)
	}
	r.Stdout = strings.Join(strings.Fields(r.Stdout), " ") // as it was before it was broken into lines
	return r, whole
}

// alone runs the script in one process.
func (d *divided) alone(script string) *summary.Summary {
	d.t.Helper()
	env := append(d.env, "TOPIC="+d.topic+"-alone", "BROKER_REPORT_NAME=alone")
	if r := harness.K6(d.t, env, "run", "--quiet", "--no-thresholds", script); r.Code != 0 {
		d.t.Fatal(r)
	}
	s, err := summary.Read(filepath.Join(d.dir, "alone"))
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// A scenario of loops in three processes is what it is in one, to the message, whatever its schedule.
func TestSegmentsOfLoopsAreOneLoad(t *testing.T) {
	t.Parallel()
	for name, load := range map[string]map[string]any{
		"constant": {"rate": 997, "duration": "3s", "producers": 2, "payload": map[string]any{"size": map[string]any{"distribution": "uniform", "min": 60, "max": 900}, "keys": 11}},
		"counted":  {"rate": 997, "count": 2000},
		"poisson":  {"rate": 500, "duration": "3s", "arrivals": "poisson", "seed": 17},
		"ramp":     {"startRate": 10, "stages": []map[string]any{{"target": 900, "duration": "2s"}, {"target": 7, "duration": "1s"}}},
		"trace":    {"trace": trace()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(load)
			if err != nil {
				t.Fatal(err)
			}
			path := harness.Script(t, loop)
			d := divide(t, path, 3, "LOAD="+string(text))
			sent := int64(0)
			for i, r := range d.ended {
				of := d.of(i + 1)
				if len(of.Topics) == 0 {
					t.Fatal(r)
				}
				if n := of.Topics[0].Counts["sent"]; r.Code != 0 || n == 0 {
					t.Errorf("process %d sent %d\n%v", i+1, n, r)
				} else {
					sent += n
				}
				if of.Segment.Of != []string{"0:1/3", "1/3:2/3", "2/3:1"}[i] || of.Segment.Sequence != "0,1/3,2/3,1" || of.Processes != 3 {
					t.Errorf("process %d: %+v of %d", i+1, of.Segment, of.Processes)
				}
			}
			r, whole := d.merge(1, 2, 3)
			harness.Same(t, whole, d.alone(path))
			if n := whole.Topics[0].Counts["sent"]; n != sent || whole.Verdict.Has("processes-differ", "") {
				t.Errorf("%d and %d\n%v", sent, n, r)
			}
		})
	}
}

// The scenario as it is, where nothing is kept for who is not there: one subscriber, in one of the processes, gets what all of them send.
func TestTheScenarioOfLoopsInSegments(t *testing.T) {
	t.Parallel()
	path, err := filepath.Abs(harness.Quick)
	if err != nil {
		t.Fatal(err)
	}
	for _, broker := range []string{"BROKER_URL_NATS", "BROKER_URL_REDIS_PUBSUB"} {
		t.Run(broker, func(t *testing.T) {
			t.Parallel()
			d := divide(t, path, 3, "BROKER_URL="+harness.URL(t, broker), "RATE=700", "DURATION=4s", "ARRIVALS=poisson", "PRODUCERS=2")
			for _, r := range d.ended {
				if r.Code != 0 {
					t.Error(r)
				}
			}
			_, whole := d.merge(1, 2, 3)
			together, alone := whole.Topics[0], d.alone(path).Topics[0]
			for _, count := range []string{"due", "sent", "confirmed", "received", "bytes_sent"} {
				if together.Counts[count] != alone.Counts[count] || alone.Counts[count] == 0 {
					t.Errorf("%s: %d together, %d alone", count, together.Counts[count], alone.Counts[count])
				}
			}
			// What is sent in the last second is expected of nobody who keeps nothing and has left by then: it is received all the same.
			if g := together.Groups[0]; g.Lost+g.Missing+g.Duplicated+g.Foreign != 0 {
				t.Errorf("%+v", g.Account)
			}
		})
	}
}

// trace is messages at odd times, with sizes and keys.
func trace() string {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "%dms %d key-%d\n", i*i/400, 50+i%300, i%5)
	}
	return b.String()
}

// Where k6 divides the VUs of an executor of its own, a loop stays whole, and a process that has none of its VUs says so.
func TestASegmentWithoutVUIsNotValid(t *testing.T) {
	t.Parallel()
	path := harness.Script(t, loop)
	d := divide(t, path, 2, "EXECUTOR=per-vu-iterations", `LOAD={"rate":500,"duration":"3s"}`)
	idle := d.of(2)
	if idle.Verdict.Valid || !idle.Verdict.Has("load-incomplete", "idle") {
		t.Errorf("%+v\n%v", idle.Verdict, d.ended[1])
	}
	r, whole := d.merge(1, 2)
	if whole.Verdict.Valid || !whole.Verdict.Has("load-incomplete", "idle") || r.Code != 99 {
		t.Error(r)
	}
	harness.Same(t, whole, d.alone(path))
}

// Setup and teardown run in each process, and come to what they come to in one: nobody deletes what another has filled or still uses.
func TestSetupAndTeardownInEachSegment(t *testing.T) {
	t.Parallel()
	path := harness.Script(t, loop)
	d := divide(t, path, 3, "ANEW=yes", `LOAD={"rate":500,"duration":"3s"}`)
	for i, r := range d.ended {
		if r.Code != 0 {
			t.Errorf("process %d: %v", i+1, r)
		}
	}
	_, whole := d.merge(1, 2, 3)
	if n := whole.Topics[0].Counts["sent"]; n != 2500 {
		t.Errorf("%d messages were sent", n)
	}
	harness.Same(t, whole, d.alone(path))
	gone := harness.Script(t, `
import broker from 'k6/x/broker';
const conn = broker.connect(__ENV.BROKER_URL);
export default async function () { await conn.deleteTopic(__ENV.TOPIC); }`)
	if r := harness.K6(t, d.env, "run", "--quiet", gone); !strings.Contains(r.Stderr, "not_found") && !strings.Contains(r.Stderr, "not found") {
		t.Errorf("the topic is there still: %v", r)
	}
}

// What is missing of a test, or there twice, is named by its execution segment.
func TestMergeNamesSegments(t *testing.T) {
	t.Parallel()
	path := harness.Script(t, loop)
	load := `LOAD={"rate":300,"duration":"2s"}`
	d := divide(t, path, 3, load)
	if r, whole := d.merge(1, 3); whole.Verdict.Valid || r.Code != 99 ||
		!whole.Verdict.Has("processes-differ", "segments") && !whole.Verdict.Has("process-missing", "absent") {
		t.Error(r)
	}
	other := divide(t, path, 2, load)
	out := filepath.Join(t.TempDir(), "whole")
	r := harness.K6(t, nil, "x", "broker", "merge", "-o", out, filepath.Join(d.dir, "divided-1"), filepath.Join(other.dir, "divided-2"))
	if !strings.Contains(r.Stderr, "divided-1 and divided-2 are not of one test") {
		t.Error(r)
	}
}

// The time in which a process stands paused, as under k6-operator, is not the test's.
func TestWhatIsPausedIsNotTheTest(t *testing.T) {
	t.Parallel()
	path := harness.Script(t, loop)
	began := time.Now()
	d := divide(t, path, 4, `LOAD={"rate":300,"duration":"2s"}`) // the last is resumed 3 × startedApart later than the first
	took := time.Since(began)
	first, last := d.of(1), d.of(4)
	if apart := last.Started.Sub(first.Started); apart < 2*startedApart || apart > took {
		t.Errorf("the last began %v after the first", apart)
	}
	for _, s := range []*summary.Summary{first, last} {
		if s.Started.Before(began) || s.Seconds > time.Since(s.Started).Seconds() || s.Seconds < 2 {
			t.Errorf("%s began at %v and took %v s", s.Name, s.Started, s.Seconds)
		}
	}
}

// k6-operator refuses more pods than k6 inspect says that the test has VUs, and k6 run has one for each loop.
func TestTheOperatorIsToldThatLoopsAreInEachProcess(t *testing.T) {
	t.Parallel()
	var inspected struct{ MaxVUs int32 }
	r := harness.K6(t, nil, "inspect", "--execution-requirements", harness.Quick)
	if err := json.Unmarshal([]byte(r.Stdout), &inspected); err != nil || inspected.MaxVUs < 1000 {
		t.Errorf("%d VUs: %v\n%v", inspected.MaxVUs, err, r)
	}
	if r := harness.K6(t, []string{"DURATION=1s"}, "run", "--no-color", harness.Quick); r.Code != 0 || !strings.Contains(r.Stdout, "2 scenarios, 2 max VUs,") {
		t.Error(r)
	}
}
