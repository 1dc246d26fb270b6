package studies

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// The test's program is the k6 that the tests run: it leaves a result whose rate is the setting RATE, and notes that it ran.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "run" && os.Args[1] != "deps" {
		os.Exit(m.Run())
	}
	if err := pretend(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "level=error msg=%q\n", err)
		os.Exit(107)
	}
}

func pretend(args []string) error {
	script := args[len(args)-1]
	if args[0] == "deps" {
		path, err := filepath.Abs(script)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"imports": []string{"file://" + path}})
	}
	rate, err := strconv.ParseFloat(os.Getenv("RATE"), 64)
	if err != nil {
		return err
	}
	if os.Getenv("ACKS") == "broken" {
		return errors.New("nobody acknowledges")
	}
	topic := result.Topic{Driver: "kafka", Topic: "t", Counts: map[string]int64{"confirmed": int64(10 * rate)}, Errors: []result.ErrorCount{}}
	topic.Proves(result.Proof{Confirm: "accepted", How: os.Getenv("ACKS")})
	topic.Spans = map[string]result.Span{"confirmed": {Last: 10}}
	r := &result.Result{
		Version: result.Version, Started: time.Now(), Seconds: 10, Topics: []result.Topic{topic}, Environment: map[string]string{"cpus": "2"},
		Verdict: result.Verdict{Valid: true},
	}
	switch os.Getenv("ACKS") {
	case "late":
		r.Verdict = result.Verdict{Account: true, Reasons: []reason.Reason{reason.New(reason.PercentileNotReliable, reason.Invalid, nil)}}
	case "spoilt":
		r.Verdict = result.Verdict{Reasons: []reason.Reason{reason.New(reason.EndedEarly, reason.Invalid, reason.Values{"why": "no-iteration"})}}
	}
	folder := report.Folder{Dir: os.Getenv("BROKER_REPORT_DIR"), Name: os.Getenv("BROKER_REPORT_NAME")}
	return folder.Write(r, nil)
}

const script = `export default function () { return [__ENV.RATE, __ENV.ACKS]; }`

const file = `
import { question } from './common.js';
export const study = {
  title: 'A study', question, source: { citation: 'Somebody, 2014', url: 'https://example.org' }, original: 'Another machine',
  claims: ['Twice as fast.'], changed: ['Nothing.'], brokers: ['kafka'], repeat: 2,
  tests: [
    {
      name: 'closed', title: 'As fast as it goes', script: './script.js', settings: { ACKS: 'leader' }, base: 'one',
      columns: [{ title: 'records', measured: 'confirmed rate' }],
      cells: [
        { name: 'one', settings: { RATE: 1000 * SCALE }, published: { records: 400 } },
        { name: 'two', settings: { RATE: 3000 * SCALE, ACKS: 'all' }, published: { records: 800 } },
        { name: 'elsewhere', settings: { RATE: 1, ACKS: __ENV.NOWHERE }, published: { records: 'many' } },
      ],
    },
    {
      name: 'open', title: 'At 70 %', script: './script.js', settings: { ACKS: 'leader' }, columns: [{ title: 'records', measured: 'confirmed rate' }],
      cells: [{ name: 'at 70 %', settings: { RATE: 700 * SCALE } }],
    },
  ],
};`

// folder has a study and its script.
func folder(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"study.js": file, "script.js": script, "common.js": `export const question = 'How fast?';`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs the study in a folder.
func run(t *testing.T, dir string, resume bool, only ...string) (*Run, error) {
	t.Helper()
	data, err := Load(filepath.Join(dir, "study.js"), map[string]string{}, 0.5)
	if err != nil {
		return nil, err
	}
	r := &Run{Data: data, Only: only, Command: "k6 x broker study study.js"}
	r.Folder, r.Resume, r.Out = filepath.Join(dir, "out"), resume, &strings.Builder{}
	return r, r.Do(t.Context())
}

// done runs the study, which must not fail, and returns its tables.
func done(t *testing.T, dir string, resume bool, only ...string) (*Run, string) {
	t.Helper()
	r, err := run(t, dir, resume, only...)
	if err != nil {
		t.Fatalf("%v\n%v", err, r)
	}
	text, err := os.ReadFile(filepath.Join(r.Folder, cells.TablesFile))
	if err != nil {
		t.Fatal(err)
	}
	return r, string(text)
}

func TestRun_MeasuredBesidePublished(t *testing.T) {
	_, text := done(t, folder(t, file), false)
	for _, want := range []string{
		"| one | 400/s | 500/s | 1 | 1 | accepted: leader |", "| two | 800/s | 1500/s | 2 | 3 | accepted: all |", // at half the scale
		"| at 70 % | 350/s |",
		"- closed, elsewhere: ACKS has no value",
		"Compare ratios within the study", "](cells/closed-1-1-one/report.html)", "[Somebody, 2014](https://example.org)", "- Twice as fast.", "- Nothing.", "- cpus: 2\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
}

// A run that is not valid has no number, and gives no ratio.
func TestRun_NotValid_NoNumber(t *testing.T) {
	spoilt := strings.Replace(file, "settings: { RATE: 1000 * SCALE }", "settings: { RATE: 1000 * SCALE, ACKS: 'spoilt' }", 1)
	_, text := done(t, folder(t, spoilt), false)
	for _, want := range []string{"| two | 800/s | 1500/s | 2 | – |", "| one ✗ NOT VALID: ", " | 400/s | – | 1 | – |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// Rates of a run of which only the latencies are not valid are doubtful.
func TestRun_LatenciesNotValid_RatesDoubtful(t *testing.T) {
	late := strings.Replace(file, "settings: { RATE: 1000 * SCALE }", "settings: { RATE: 1000 * SCALE, ACKS: 'late' }", 1)
	_, text := done(t, folder(t, late), false)
	for _, want := range []string{"| two | 800/s | 1500/s | 2 | 3? |", "| one ✗ NOT VALID: percentile-not-reliable | 400/s | 500/s? | 1 | 1? |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// The rate of a test is a share of the most that another had.
func TestRun_Rate_ShareOfAnotherTest(t *testing.T) {
	shared := strings.Replace(file, "cells: [{ name: 'at 70 %', settings: { RATE: 700 * SCALE } }]",
		"rate: { test: 'closed', share: 0.7 }, cells: [{ name: 'at 70 %' }]", 1)
	dir := folder(t, shared)
	if _, text := done(t, dir, false); !strings.Contains(text, "| at 70 % | 1050/s |") {
		t.Error(text)
	}
	if r, _ := done(t, dir, true); ran(r) != 0 {
		t.Errorf("%d runs again", ran(r))
	}
	none := strings.NewReplacer("ACKS: 'all'", "ACKS: 'spoilt'", "RATE: 1000 * SCALE }", "RATE: 1000 * SCALE, ACKS: 'spoilt' }").Replace(shared)
	if _, text := done(t, folder(t, none), false); !strings.Contains(text, "- open, at 70 %: no valid run of closed gives its rate") {
		t.Error(text)
	}
}

func TestRun_CellFails_OthersRun(t *testing.T) {
	r, err := run(t, folder(t, strings.Replace(file, "ACKS: 'all'", "ACKS: 'broken'", 1)), false, "closed")
	if err == nil || !strings.Contains(err.Error(), "cells without a result: 2") || ran(r) != 4 {
		t.Errorf("%v:\n%s", err, r.Out)
	}
}

func TestRun_UnknownPhase_NoNumber(t *testing.T) {
	columns := "columns: [{ title: 'records', measured: 'confirmed rate' }],"
	peak := "columns: [{ title: 'records', measured: 'confirmed rate' }, { title: 'peak', measured: 'confirmed rate', phase: 'paek' }],"
	r, _ := done(t, folder(t, strings.Replace(file, columns, peak, 1)), false, "closed")
	if s := r.Data.Tests[0].Columns[1].Spread(r.runs...); len(s.Values) > 0 || !strings.Contains(fmt.Sprint(s.Unknown), "not the phase") {
		t.Errorf("%+v", s)
	}
}

// A column without a ratio has none, and its row as many cells as there are titles.
func TestRun_WithoutRatio(t *testing.T) {
	_, text := done(t, folder(t, strings.Replace(file, "measured: 'confirmed rate'", "measured: 'confirmed rate', ratio: false", 1)), false, "closed")
	if want := "|  | records, published | records | confirmed means |\n|---|---:|---:|---:|\n"; !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

// ran is the number of runs that a process of the study made.
func ran(r *Run) int { return strings.Count(fmt.Sprint(r.Out), "repetition") }

func TestRun_Resumes(t *testing.T) {
	dir := folder(t, file)
	if r, _ := done(t, dir, false); ran(r) != 6 {
		t.Errorf("%d runs, want 6:\n%v", ran(r), r.Out)
	}
	if err := os.RemoveAll(filepath.Join(dir, "out", "cells", "closed-1-1-one")); err != nil {
		t.Fatal(err)
	}
	if r, _ := done(t, dir, true); ran(r) != 1 {
		t.Errorf("%d runs were left, want 1:\n%v", ran(r), r.Out)
	}
	if _, err := run(t, dir, false); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a folder that exists: %v", err)
	}
	other := strings.Replace(file, "3000 * SCALE", "4000 * SCALE", 1)
	if err := os.WriteFile(filepath.Join(dir, "study.js"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, dir, true); err == nil || !strings.Contains(err.Error(), "cells of closed was") {
		t.Errorf("another study: %v", err)
	}
}

// A mistake in a study is an error before anything runs.
func TestRun_Mistakes(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"title: 'A study'", "titel: 'A study'", `unknown field "titel"`},
		{"title: 'A study'", "title: 7", "cannot unmarshal number"},
		{"export const study", "export const studies", "a study needs a title and tests"},
		{"repeat: 2", "repeat: -2", "it must be 1 or more"},
		{"measured: 'confirmed rate'", "measured: 'confirmed speed'", `test "closed": `},
		{"name: 'open',", "name: 'open', rate: { test: 'shut', share: 1 },", `rate: there is no test "shut"`},
		{"base: 'one'", "base: 'none'", `test "closed": base: there is no cell "none"`},
		{"name: 'two'", "name: 'one'", `there are two cells "one"`},
		{"published: { records: 400 }", "published: { record: 400 }", `test "closed": cell "one": published: there is no column "record"`},
		{"RATE: 1000 * SCALE", "'RA TE': 1", "RA TE: the script never reads it"},
		{"RATE: 1000 * SCALE", "BROKER_RUN: 1", "BROKER_RUN: the script never reads it, or each run has its own"},
		{"RATE: 1000 * SCALE", "SPEED: 1", "test closed: SPEED: the script never reads it"},
		{"RATE: 3000 * SCALE", "RATE: { test: 1 }", "a setting is a text, a number or a boolean"},
		{"'./common.js'", "'k6'", `Could not resolve "k6"`},
		{"'./common.js'", "'./nothing.js'", "nothing.js"},
		{"script: './script.js', settings: { ACKS: 'leader' }, base", "script: './absent.js', settings: { ACKS: 'leader' }, base", "test closed: open "},
		{"measured: 'confirmed rate'", "measured: 'confirmed rate', ratio: 1", "cannot unmarshal number"},
		{"tests: [", "tests: [], others: [", `unknown field "others"`},
		{"title: 'A study'", "title: nowhere", "nowhere is not defined"},
	} {
		if !strings.Contains(file, c.from) {
			t.Fatalf("the study has no %q", c.from)
		}
		dir := folder(t, strings.Replace(file, c.from, c.to, 1))
		if _, err := run(t, dir, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
			t.Errorf("%s: there is a folder", c.to)
		}
	}
	bare := strings.NewReplacer("RATE: 1000 * SCALE", "RATE: ''", "RATE: 3000 * SCALE", "RATE: undefined").Replace(file)
	if _, err := run(t, folder(t, bare), false, "closed"); err == nil || !strings.Contains(err.Error(), `nothing can be run: `) {
		t.Errorf("no values: %v", err)
	}
	if _, err := run(t, folder(t, file), false, "shut"); err == nil || !strings.Contains(err.Error(), "a study needs a title and tests") {
		t.Errorf("--only: %v", err)
	}
}
