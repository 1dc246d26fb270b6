package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

func TestHandleSummaryWritesTheResults(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "results")
	r := harness.K6(t, harness.Settings(dir, ""), "run", "--quiet", harness.Quick)
	if r.Code != 0 || !strings.Contains(r.Stdout, "verdict:") || !strings.Contains(r.Stdout, "checks_total") && !strings.Contains(r.Stdout, "iterations") {
		t.Fatal(r)
	}
	folders := harness.Names(t, dir)
	if len(folders) != 1 || !strings.HasPrefix(folders[0], "producer-consumer-20") || !strings.Contains(r.Stdout, folders[0]) {
		t.Fatalf("folders %q\n%v", folders, r)
	}
	folder := filepath.Join(dir, folders[0])
	written := harness.Names(t, folder)
	for _, trend := range []string{"publish_latency", "publish_time", "e2e_latency", "e2e_time", "schedule_lag"} {
		for _, ext := range []string{"hgrm", "hlog"} {
			if name := "xk6-producer-consumer." + trend + "." + ext; !slices.Contains(written, name) {
				t.Errorf("no %s in %q", name, written)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, summary.File))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile("../extensions/xk6-broker/internal/report/summary.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document); err != nil {
		t.Error(err)
	}
	result, err := summary.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if n := result.Topics[0].Counts["received"]; n != 1000 || result.Name != folders[0] || result.Environment["k6"] == "" || result.Environment["xk6-broker"] != harness.Version(t) {
		t.Errorf("received %d, name %q, environment %v", n, result.Name, result.Environment)
	}
}

// A folder that is taken is known before the test starts, not after it.
func TestAFolderThatIsTakenFailsInInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if r := harness.K6(t, harness.Settings(dir, "mine"), "run", "--quiet", harness.Quick); r.Code != 0 {
		t.Fatal(r)
	}
	r := harness.K6(t, harness.Settings(dir, "mine"), "run", "--quiet", harness.Quick)
	if r.Code == 0 || !strings.Contains(r.Stderr, "exists already") || !strings.Contains(r.Stderr, "BROKER_REPORT_OVERWRITE") || strings.Contains(r.Stdout, "verdict") {
		t.Error(r)
	}
	if r := harness.K6(t, harness.Settings(dir, "mine", "BROKER_REPORT_OVERWRITE=true", "RATE=100"), "run", "--quiet", harness.Quick); r.Code != 0 {
		t.Error(r)
	}
	if result, err := summary.Read(filepath.Join(dir, "mine")); err != nil || result.Topics[0].Counts["sent"] != 200 {
		t.Errorf("%v, %v", result, err)
	}
	if r := harness.K6(t, harness.Settings(dir, "../escape"), "run", "--quiet", harness.Quick); r.Code == 0 || !strings.Contains(r.Stderr, "no name for a folder") {
		t.Error(r)
	}
}

func TestReportCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := harness.K6(t, harness.Settings(dir, "mine", "BROKER_REPORT=off"), "run", "--quiet", harness.Quick)
	if r.Code != 0 || !strings.Contains(r.Stdout, "verdict:") || len(harness.Names(t, dir)) > 0 {
		t.Errorf("%q\n%v", harness.Names(t, dir), r)
	}
	if r := harness.K6(t, harness.Settings(dir, "mine", "BROKER_REPORT=of"), "run", "--quiet", harness.Quick); r.Code == 0 || !strings.Contains(r.Stderr, "is not one of on, off") {
		t.Error(r)
	}
}

func TestReportBelongsIntoHandleSummary(t *testing.T) {
	r := harness.K6(t, nil, "run", "--quiet", harness.Script(t, `
import broker from 'k6/x/broker';
export default function () { broker.handleSummary(); }`))
	if !strings.Contains(r.Stderr, "the test has not ended") {
		t.Error(r)
	}
}

func TestCompareAndReportOnTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"before", "after"} {
		if r := harness.K6(t, harness.Settings(dir, name), "run", "--quiet", harness.Quick); r.Code != 0 {
			t.Fatal(r)
		}
	}
	before, after, page := filepath.Join(dir, "before"), filepath.Join(dir, "after"), filepath.Join(dir, "c.html")
	compare := func(args ...string) harness.Result {
		return harness.K6(t, nil, append([]string{"x", "broker", "compare"}, args...)...)
	}
	if r := compare(before, after, "-o", page, "--fail-if", "lost > 0", "--allow-invalid"); r.Code != 0 || !strings.Contains(r.Stdout, "passed  fail if lost > 0") {
		t.Error(r)
	}
	for want, args := range map[string][]string{
		"exists already":       {before, after, "-o", page},
		"FAILED":               {before, after, "-o", page, "--overwrite", "--fail-if", "e2e_latency p50 > 1ns"},
		"it is not understood": {before, after, "-o", page, "--overwrite", "--fail-if", "e2e_latency"},
		"no such file":         {before, filepath.Join(dir, "nothing"), "-o", page}, // and not that the page is there
		"a result is read from its folder, and not from a page: give " + after: {before, filepath.Join(after, "report.html"), "-o", page},
	} {
		if r := compare(args...); r.Code == 0 || !strings.Contains(r.Stdout+r.Stderr, want) {
			t.Errorf("want %q\n%v", want, r)
		} else if want == "FAILED" && r.Code != 99 {
			t.Errorf("exit %d", r.Code)
		}
	}
	invalid(t, after, filepath.Join(dir, "bad"), "nothing-received")
	numbers := []string{before, filepath.Join(dir, "bad"), "-o", page, "--overwrite", "--fail-if", "lost > 0"}
	if r := compare(numbers...); r.Code != 99 || !strings.Contains(r.Stdout, "FAILED  fail if a run is not valid: bad: nothing-received") {
		t.Error(r)
	}
	if r := compare(numbers[:5]...); r.Code != 0 { // no number decides anything
		t.Error(r)
	}
	if r := compare(append(numbers, "--allow-invalid")...); r.Code != 0 {
		t.Error(r)
	}
	drawn := filepath.Join(before, summary.Page)
	want, err := os.ReadFile(drawn)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(drawn); err != nil {
		t.Fatal(err)
	}
	if r := harness.K6(t, nil, "x", "broker", "report", before); r.Code != 0 {
		t.Error(r)
	}
	if got, err := os.ReadFile(drawn); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the page drawn anew is another one: %v", err)
	}
}

// What was asked for stands in the result: an hour later nobody knows it otherwise.
func TestAResultSaysWhatWasTested(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := harness.K6(t, harness.Settings(dir, "mine"), "run", "--quiet", harness.Script(t, `
import broker from 'k6/x/broker';
import { check, group } from 'k6';
const conn = broker.connect('embedded:?password=5ecret-of-the-url', { profile: 'durable' });
const orders = conn.producer('orders', { maxInFlight: 64 });
const audit = conn.consumer('orders', { group: 'audit', prefetch: 10 });
const unused = conn.producer('unused');
export const options = { scenarios: {
  produce: { executor: 'open-arrival-rate', rate: 50, duration: '1s', startTime: '1s', preAllocatedVUs: 2, maxVUs: 5, exec: 'produce', tags: { team: 'a' }, env: { TOKEN: '5ecret' } },
  consume: { executor: 'per-vu-iterations', vus: 2, exec: 'consume', maxDuration: '20s' },
  bulk: { executor: 'shared-iterations', exec: 'bulk', startTime: '1s' },
} };
export async function setup() {
  await conn.createTopic('orders', { partitions: 1, replicas: 1 });
  await conn.createTopic('never-used');
}
export async function produce() {
  const receipt = await orders.send({ body: 'x'.repeat(50) });
  group('answers', () => check(receipt, { 'confirmed': (r) => r.time >= 0, 'odd': () => __ITER % 2 === 1 }));
}
export async function bulk() {
  await orders.produce({ rate: 20, count: 10, payload: { size: 200 } });
  broker.mark('bulk is over');
}
export async function consume() { await audit.consume({ duration: '4s', work: '1ms' }); }
export function handleSummary() {
  broker.handleSummary();
  const all = broker.result().checks;
  return { stdout: 'checks in result(): ' + JSON.stringify(all) };
}`))
	if r.Code != 0 {
		t.Fatal(r)
	}
	result, err := summary.Read(filepath.Join(dir, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	if result.Test.Script != "script.js" {
		t.Errorf("script %q", result.Test.Script)
	}
	var scenarios []string
	for _, s := range result.Test.Scenarios {
		scenarios = append(scenarios, fmt.Sprint(s))
	}
	want := []string{
		"{consume per-vu-iterations consume 2 2 map[iterations:1 maxDuration:20s]}",
		"{bulk shared-iterations bulk 1 1 map[iterations:1 startTime:1s]}",
		"{produce open-arrival-rate produce 2 5 map[arrivals:constant duration:1s rate:50 startTime:1s tags:map[team:a] timeUnit:1s]}",
	}
	if !slices.Equal(scenarios, want) {
		t.Errorf("scenarios\n%s", strings.Join(scenarios, "\n"))
	}
	if got := fmt.Sprint(result.Checks); len(result.Checks) != 2 || !strings.HasPrefix(got, "[{answers::confirmed 50 0} {answers::odd ") {
		t.Error(got)
	}
	if !strings.Contains(r.Stdout, `checks in result(): [{"name":"answers::confirmed","passes":50,"fails":0}`) {
		t.Error(r)
	}
	if len(result.Marks) != 1 || result.Marks[0].What != "bulk is over" || result.Marks[0].At <= 1 || result.Marks[0].At > result.Seconds {
		t.Errorf("marks %v in %v s", result.Marks, result.Seconds)
	}
	if len(result.Topics) != 1 { // neither what was only described, nor what was only created
		t.Fatalf("%d topics", len(result.Topics))
	}
	topic := result.Topics[0]
	for of, options := range map[string]map[string]any{
		"connect": {"profile": "durable"}, "topic": {"partitions": nil, "replicas": 1.0, "storage": "file"}, "producer": {"maxInFlight": 64.0, "connections": 1.0},
		"consumer": {"group": "audit", "prefetch": 10.0, "start": "new", "connections": "per-vu"},
		"produce":  {"rate": 20.0, "timeUnit": "1s", "count": 10.0, "payload.size": 200.0}, "consume": {"duration": "4s", "work": "1ms", "consumers": 1.0, "ack": "batch"},
	} {
		if len(topic.Options[of]) != 1 {
			t.Errorf("%s: %v", of, topic.Options[of])
			continue
		}
		for name, value := range options {
			if got := topic.Options[of][0][name]; got != value {
				t.Errorf("%s %s: %v, want %v", of, name, got, value)
			}
		}
	}
	if n := topic.Groups[0].Members; n != 2 {
		t.Errorf("%d members", n)
	}
	for _, line := range []string{
		"produce: open-arrival-rate, function produce, 2 to 5 VUs, arrivals constant, duration 1s, rate 50, startTime 1s", "group audit: consumers 2", "messages: mean size 75 bytes",
	} {
		if !strings.Contains(r.Stdout, line) {
			t.Errorf("the terminal does not say %q\n%v", line, r)
		}
	}
	for _, name := range harness.Names(t, filepath.Join(dir, "mine")) {
		text, err := os.ReadFile(filepath.Join(dir, "mine", name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "5ecret") {
			t.Errorf("a secret is in %s", name)
		}
	}
}

// invalid writes the summary of a run once more, as it would be were the run not valid for a reason of a code.
func invalid(t *testing.T, run, to, code string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(run, summary.File))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	verdict, ok := all["verdict"].(map[string]any)
	if !ok {
		t.Fatalf("no verdict in\n%s", text)
	}
	all["name"], verdict["valid"], verdict["reasons"] = filepath.Base(to), false, []any{map[string]any{"code": code, "level": "invalid", "values": map[string]any{}}}
	if text, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, summary.File), text, 0o600); err != nil {
		t.Fatal(err)
	}
}
