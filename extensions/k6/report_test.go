package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/report"
)

const quick = "../../scenarios/producer-consumer.js"

// in gives the settings of a short run whose results go to a folder.
func in(dir, name string, more ...string) []string {
	return append([]string{"BROKER_REPORT_DIR=" + dir, "BROKER_REPORT_NAME=" + name, "DURATION=2s", "RATE=500"}, more...)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestHandleSummaryWritesTheResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	r := k6(t, in(dir, ""), "run", "--quiet", quick)
	if r.code != 0 || !strings.Contains(r.stdout, "verdict:") || !strings.Contains(r.stdout, "checks_total") && !strings.Contains(r.stdout, "iterations") {
		t.Fatal(r)
	}
	folders := names(t, dir)
	if len(folders) != 1 || !strings.HasPrefix(folders[0], "producer-consumer-20") || !strings.Contains(r.stdout, folders[0]) {
		t.Fatalf("folders %q\n%v", folders, r)
	}
	folder := filepath.Join(dir, folders[0])
	written := names(t, folder)
	for _, trend := range []string{"publish_latency", "publish_time", "e2e_latency", "e2e_time", "schedule_lag"} {
		for _, ext := range []string{"hgrm", "hlog"} {
			if name := "xk6-producer-consumer." + trend + "." + ext; !slices.Contains(written, name) {
				t.Errorf("no %s in %q", name, written)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, report.SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile("../xk6-broker/report/summary.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document); err != nil {
		t.Error(err)
	}
	result, err := report.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if n := result.Topics[0].Counts["received"]; n != 1000 || result.Name != folders[0] || result.Environment["k6"] == "" {
		t.Errorf("received %d, name %q, environment %v", n, result.Name, result.Environment)
	}
}

// A folder that is taken is known before the test starts, not after it.
func TestAFolderThatIsTakenFailsInInit(t *testing.T) {
	dir := t.TempDir()
	if r := k6(t, in(dir, "mine"), "run", "--quiet", quick); r.code != 0 {
		t.Fatal(r)
	}
	r := k6(t, in(dir, "mine"), "run", "--quiet", quick)
	if r.code == 0 || !strings.Contains(r.stderr, "exists already") || !strings.Contains(r.stderr, "BROKER_REPORT_OVERWRITE") || strings.Contains(r.stdout, "verdict") {
		t.Error(r)
	}
	if r := k6(t, in(dir, "mine", "BROKER_REPORT_OVERWRITE=true", "RATE=100"), "run", "--quiet", quick); r.code != 0 {
		t.Error(r)
	}
	if result, err := report.Read(filepath.Join(dir, "mine")); err != nil || result.Topics[0].Counts["sent"] != 200 {
		t.Errorf("%v, %v", result, err)
	}
	if r := k6(t, in(dir, "../escape"), "run", "--quiet", quick); r.code == 0 || !strings.Contains(r.stderr, "no name for a folder") {
		t.Error(r)
	}
}

func TestReportCanBeTurnedOff(t *testing.T) {
	dir := t.TempDir()
	r := k6(t, in(dir, "mine", "BROKER_REPORT=off"), "run", "--quiet", quick)
	if r.code != 0 || !strings.Contains(r.stdout, "verdict:") || len(names(t, dir)) > 0 {
		t.Errorf("%q\n%v", names(t, dir), r)
	}
	if r := k6(t, in(dir, "mine", "BROKER_REPORT=of"), "run", "--quiet", quick); r.code == 0 || !strings.Contains(r.stderr, "is not one of on, off") {
		t.Error(r)
	}
}

func TestReportBelongsIntoHandleSummary(t *testing.T) {
	r := k6(t, nil, "run", "--quiet", script(t, `
import broker from 'k6/x/broker';
export default function () { broker.report({ name: 'x' }); }`))
	if !strings.Contains(r.stderr, "call it in handleSummary") {
		t.Error(r)
	}
	r = k6(t, nil, "run", "--quiet", script(t, `
import broker from 'k6/x/broker';
broker.checkReport({ nam: 'x' });
export default function () {}`))
	if r.code == 0 || !strings.Contains(r.stderr, "known are dir, name, overwrite") {
		t.Error(r)
	}
}

func TestCompareAndReportOnTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"before", "after"} {
		if r := k6(t, in(dir, name), "run", "--quiet", quick); r.code != 0 {
			t.Fatal(r)
		}
	}
	before, after, page := filepath.Join(dir, "before"), filepath.Join(dir, "after"), filepath.Join(dir, "c.html")
	compare := func(args ...string) result { return k6(t, nil, append([]string{"x", "broker", "compare"}, args...)...) }
	if r := compare(before, after, "-o", page, "--fail-if", "lost > 0", "--allow-invalid"); r.code != 0 || !strings.Contains(r.stdout, "passed  fail if lost > 0") {
		t.Error(r)
	}
	for want, args := range map[string][]string{
		"exists already":       {before, after, "-o", page},
		"FAILED":               {before, after, "-o", page, "--overwrite", "--fail-if", "e2e_latency p50 > 1ns"},
		"it is not understood": {before, after, "-o", page, "--overwrite", "--fail-if", "e2e_latency"},
		"no such file":         {before, filepath.Join(dir, "nothing"), "-o", page, "--overwrite"},
	} {
		if r := compare(args...); r.code == 0 || !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("want %q\n%v", want, r)
		} else if want == "FAILED" && r.code != 99 {
			t.Errorf("exit %d", r.code)
		}
	}
	bad, err := report.Read(after)
	if err != nil {
		t.Fatal(err)
	}
	bad.Name, bad.Verdict.Valid, bad.Verdict.Reasons = "bad", false, []string{"the moon was full"}
	if err := (report.Folder{Dir: dir, Name: "bad"}).Write(bad, nil, nil); err != nil {
		t.Fatal(err)
	}
	numbers := []string{before, filepath.Join(dir, "bad"), "-o", page, "--overwrite", "--fail-if", "lost > 0"}
	if r := compare(numbers...); r.code != 99 || !strings.Contains(r.stdout, "FAILED  fail if a run is not valid: bad: the moon was full") {
		t.Error(r)
	}
	if r := compare(numbers[:5]...); r.code != 0 { // no number decides anything
		t.Error(r)
	}
	if r := compare(append(numbers, "--allow-invalid")...); r.code != 0 {
		t.Error(r)
	}
	drawn := filepath.Join(before, report.PageFile)
	want, err := os.ReadFile(drawn)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(drawn); err != nil {
		t.Fatal(err)
	}
	if r := k6(t, nil, "x", "broker", "report", before); r.code != 0 {
		t.Error(r)
	}
	if got, err := os.ReadFile(drawn); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the page drawn anew is another one: %v", err)
	}
}
