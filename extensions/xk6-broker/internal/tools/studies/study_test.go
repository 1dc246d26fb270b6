package studies

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// The test's program is the k6 that the tests run: it leaves a result whose rate is the setting RATE, and notes that it ran.
func TestMain(m *testing.M) {
	if os.Getenv("REPLAY_TEST_K6") == "" {
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
	if os.Getenv("FADING") != "" { // each run is slower than the one before
		before, err := os.ReadDir(os.Getenv("BROKER_REPORT_DIR"))
		if err != nil {
			return err
		}
		rate *= math.Pow(0.97, float64(len(before)))
	}
	topic := result.Topic{Driver: "kafka", Topic: "t", Counts: map[string]int64{"confirmed": int64(10 * rate)}, Errors: []result.ErrorCount{}}
	topic.Proves(result.Proof{Confirm: "accepted", How: os.Getenv("ACKS")})
	topic.Spans = map[string]result.Span{"confirmed": {Last: 10}}
	r := &result.Result{
		Version: result.Version, Started: time.Now(), Seconds: 10, Topics: []result.Topic{topic}, Environment: map[string]string{"cpus": "2"},
		Verdict: result.Verdict{Valid: true}, Instance: uint32(os.Getpid()),
	}
	switch os.Getenv("ACKS") {
	case "spoilt":
		r.Verdict = result.Verdict{Reasons: []reason.Reason{reason.New(reason.EndedEarly, reason.Invalid, reason.Values{"why": "no-iteration"})}}
	case "late": // which is nothing against a rate
		r.Verdict = result.Verdict{Account: true, Reasons: []reason.Reason{reason.New(reason.GeneratorSaturated, reason.Invalid, nil)}}
	}
	var ledger *account.Ledger
	if os.Getenv("BROKER_RUN") != "" {
		r.Run = 1
		r.Started = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) // one moment for all processes, however late the machine starts them
		ledger = &account.Ledger{
			Version: account.LedgerVersion, Run: r.Run, Instance: r.Instance, Clock: "one", Ended: time.Now().UnixNano(), Topics: []account.TopicLedger{{Driver: "kafka", Topic: "t"}},
		}
	}
	record := recording.Record{Key: recording.Key{Driver: topic.Driver, Topic: topic.Topic}}
	record.Counts[recording.Confirmed] = int64(10 * rate)
	begun := r.Started.UnixNano()
	record.Spans[1] = recording.Span{First: begun, Last: begun + 10*int64(time.Second)}
	r.Recording = &recording.Recording{}
	r.Recording.Add(&recording.Interval{From: begun, To: begun + 10*int64(time.Second), Records: []recording.Record{record}})
	folder := report.Folder{Dir: os.Getenv("BROKER_REPORT_DIR"), Name: os.Getenv("BROKER_REPORT_NAME")}
	if os.Getenv("BROKER_REPORT_MEANWHILE") == "on" && os.Getenv("FADING") == "" {
		if err := folder.Meanwhile().WriteMeanwhile(r, ledger); err != nil {
			return err
		}
		if err := report.WriteAtomic(filepath.Join(folder.Meanwhile().Path(), report.RecordingFile), r.Recording.Write); err != nil {
			return err
		}
		time.Sleep(time.Hour) // it is killed
	}
	return folder.Write(r, ledger)
}

const script = `export default function () { return [__ENV.RATE, __ENV.ACKS, __ENV.FADING]; }`

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
      cells: [{ name: 'at 70 %', settings: { RATE: { test: 'closed', column: 'records', times: 0.7 } } }],
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

// prepared is a run of the study in a folder, and what was wrong with it.
func prepared(t *testing.T, dir string, resume bool, only ...string) (*Run, error) {
	t.Helper()
	t.Setenv("REPLAY_TEST_K6", "yes")
	s, err := Load(filepath.Join(dir, "study.js"), map[string]string{}, 0.5)
	if err != nil {
		return nil, err
	}
	k6, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{
		Study: s, Folder: filepath.Join(dir, "out"), Seed: 1, Scale: 0.5, Only: only, Command: "k6 x broker study study.js", Out: &strings.Builder{},
		Runner: sweep.Runner{K6: k6},
	}
	return r, r.Prepare(t.Context(), resume)
}

func done(t *testing.T, dir string, resume bool, only ...string) *Run {
	t.Helper()
	r, err := prepared(t, dir, resume, only...)
	if err != nil {
		t.Fatal(err)
	}
	if failed, err := r.Do(t.Context(), nil); failed > 0 || err != nil {
		t.Fatalf("%d failed, %v\n%v", failed, err, r.Out)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatWasMeasuredStandsBesideWhatWasPublished(t *testing.T) {
	dir := folder(t, file)
	r := done(t, dir, false)
	text, err := os.ReadFile(filepath.Join(r.Folder, TablesFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 400/s | 500/s | 1 | 1 | accepted: leader |", "| 800/s | 1500/s | 2 | 3 | accepted: all |", // 500 and 1500: at half the scale
		"| – | 1050/s |", // of the greatest, 1500
		"- elsewhere: ACKS of \"elsewhere\" has no value", // it is said what was not run
		"Compare ratios within the study", "[1](cells/0", "[Somebody, 2014](https://example.org)", "- Twice as fast.", "- Nothing.", "| cpus | 2 |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
}

// A broker at another port of this machine is the same study.
func TestAStudyWithTheBrokerAtAnotherPort(t *testing.T) {
	at := func(port string) string {
		return strings.Replace(file, "settings: { ACKS: 'leader' }, base", "settings: { ACKS: 'leader', RATE: 5, URL: 'nats://127.0.0.1:"+port+"' }, base", 1)
	}
	dir := folder(t, at("4222"))
	if err := os.WriteFile(filepath.Join(dir, "script.js"), []byte(script+" // __ENV.URL"), 0o600); err != nil {
		t.Fatal(err)
	}
	done(t, dir, false)
	if err := os.WriteFile(filepath.Join(dir, "study.js"), []byte(at("5222")), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := done(t, dir, true); ran(r) != 0 {
		t.Errorf("%d runs again", ran(r))
	}
}

// What is not valid is no rate for another test, and no base without a word.
func TestWhatIsNotValidIsNoMeasure(t *testing.T) {
	dir := folder(t, strings.Replace(file, "RATE: 3000 * SCALE, ACKS: 'all'", "RATE: 3000 * SCALE, ACKS: 'spoilt'", 1))
	tables := func(r *Run) string {
		text, err := os.ReadFile(filepath.Join(r.Folder, TablesFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := tables(done(t, dir, false)); !strings.Contains(text, "| – | 350/s |") { // of 500, though 1500 is more
		t.Error(text)
	}
	dir = folder(t, strings.Replace(file, "settings: { RATE: 1000 * SCALE }", "settings: { RATE: 1000 * SCALE, ACKS: 'spoilt' }", 1))
	if text := tables(done(t, dir, false)); !strings.Contains(text, "| 800/s | 1500/s | 2 | 3? |") || !strings.Contains(text, "| one ✗ ") {
		t.Error(text)
	}
	dir = folder(t, strings.Replace(file, "RATE: 3000 * SCALE, ACKS: 'all'", "RATE: 3000 * SCALE, ACKS: 'late'", 1))
	if text := tables(done(t, dir, false)); !strings.Contains(text, "| – | 1050/s |") || !strings.Contains(text, "| two ✗ ") {
		t.Error(text)
	}
	dir = folder(t, strings.ReplaceAll(strings.Replace(file, "settings: { ACKS: 'leader' }, base", "settings: { ACKS: 'spoilt' }, base", 1), "ACKS: 'all'", "ACKS: 'spoilt'"))
	r, err := prepared(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // the test ends
	if failed, err := r.Do(t.Context(), nil); failed == 0 || err != nil || !strings.Contains(tables(r), "the test closed has no valid records yet") {
		t.Errorf("%d, %v: %s", failed, err, tables(r))
	}
}

// A column that nothing is known of, as there is no such phase, says why.
func TestAPhaseThatThereIsNot(t *testing.T) {
	dir := folder(t, strings.Replace(file, "columns: [{ title: 'records', measured: 'confirmed rate' }],", "columns: [{ title: 'records', measured: 'confirmed rate' }, { title: 'peak', measured: 'confirmed rate', phase: 'paek' }],", 1))
	text, err := os.ReadFile(filepath.Join(done(t, dir, false).Folder, TablesFile))
	if err != nil || !strings.Contains(string(text), `the run has no phase "paek"`) {
		t.Errorf("%v\n%s", err, text)
	}
}

// Processes that run together are one result, to which each adds its part; what is run before them is none.
func TestProcesses(t *testing.T) {
	cell := "{ name: 'one', settings: { RATE: 1000 * SCALE }, "
	dir := folder(t, strings.Replace(file, cell, cell+"processes: 3, before: { RATE: 7 }, ", 1))
	r := done(t, dir, false, "closed")
	text, err := os.ReadFile(filepath.Join(r.Folder, TablesFile))
	if err != nil {
		t.Fatal(err)
	}
	// They begin at one moment, so that their rates add up.
	if want := regexp.MustCompile(`\| 400/s \| 1(500|4[5-9]\d)/s [^|]*\| 1 \| 1\? \|`); !want.Match(text) {
		t.Errorf("no %v in\n%s", want, text)
	}
	logs, err := filepath.Glob(filepath.Join(r.Folder, sweep.CellsFolder, "*-one-*", sweep.LogFile))
	if err != nil || len(logs) != 2*(1+3) {
		t.Errorf("logs %v, %v: want those of two repetitions, of one before and three processes", logs, err)
	}
	if r := done(t, dir, true, "closed"); ran(r) != 0 {
		t.Errorf("%d runs again", ran(r))
	}
}

// A process that is killed adds what it had found out, and each has settings of its own.
func TestAProcessIsKilled(t *testing.T) {
	cell := "{ name: 'one', settings: { RATE: 1000 * SCALE }, "
	of := func(first string) string {
		return strings.Replace(file, cell, cell+"processes: [{ "+first+", kill: '1s' }, { settings: { RATE: 20 } }], before: { RATE: 7 }, ", 1)
	}
	r := done(t, folder(t, of("settings: { RATE: 300 }")), false, "closed")
	text, err := os.ReadFile(filepath.Join(r.Folder, TablesFile))
	if err != nil {
		t.Fatal(err)
	}
	if want := regexp.MustCompile(`\| 400/s \| 3[0-4]\d(\.\d)?/s `); !want.Match(text) {
		t.Errorf("no %v in\n%s", want, text)
	}
	if left, err := filepath.Glob(filepath.Join(r.Folder, sweep.CellsFolder, "*-meanwhile")); err != nil || len(left) > 0 {
		t.Errorf("%v stay, %v", left, err)
	}
	for settings, why := range map[string]string{"ACKS: 'broken'": "k6 ended with exit code 107: nobody acknowledges"} {
		r, err := prepared(t, folder(t, of("settings: { "+settings+" }")), false, "closed")
		if err != nil {
			t.Fatal(err)
		}
		failed, err := r.Do(t.Context(), nil)
		if out := fmt.Sprint(r.Out); failed != 2 || err != nil || !strings.Contains(out, "failed: process 1 of 2: "+why) {
			t.Errorf("%s: %d failed, %v:\n%s", settings, failed, err, out)
		}
	}
}

// Where what is run before a cell fails, the cell does, and no other.
func TestWhatIsRunBeforeFails(t *testing.T) {
	cell := "{ name: 'one', settings: { RATE: 1000 * SCALE }, "
	r, err := prepared(t, folder(t, strings.Replace(file, cell, cell+"before: { ACKS: 'broken' }, ", 1)), false, "closed")
	if err != nil {
		t.Fatal(err)
	}
	failed, err := r.Do(t.Context(), nil)
	if out := fmt.Sprint(r.Out); failed != 2 || err != nil || !strings.Contains(out, "failed: the run before it ended with exit code 107: k6 ended with exit code 107: nobody acknowledges") {
		t.Errorf("%d failed, %v:\n%s", failed, err, out)
	}
}

// A column without a ratio has none, and its row as many cells as there are titles.
func TestWithoutRatios(t *testing.T) {
	dir := folder(t, strings.Replace(file, "measured: 'confirmed rate'", "measured: 'confirmed rate', ratio: false", 1))
	text, err := os.ReadFile(filepath.Join(done(t, dir, false, "closed").Folder, TablesFile))
	if err != nil {
		t.Fatal(err)
	}
	if want := "|  | records, published | records, measured | confirmed means |\n|---|---:|---:|---:|\n"; !strings.Contains(string(text), want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

// ran is how many runs a process of this study has made, and not read.
func ran(r *Run) int { return strings.Count(fmt.Sprint(r.Out), "repetition") }

func TestItGoesOn(t *testing.T) {
	dir := folder(t, file)
	if r := done(t, dir, false, "closed"); ran(r) != 4 {
		t.Errorf("%d runs of one test, want 4:\n%v", ran(r), r.Out)
	}
	if r := done(t, dir, true); ran(r) != 2 { // those of the other
		t.Errorf("%d runs were left, want 2:\n%v", ran(r), r.Out)
	}
	if _, err := prepared(t, dir, false); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a folder that is taken: %v", err)
	}
	other := strings.Replace(file, "3000 * SCALE", "4000 * SCALE", 1)
	if err := os.WriteFile(filepath.Join(dir, "study.js"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := prepared(t, dir, true); err == nil || !strings.Contains(err.Error(), "cell two of closed") {
		t.Errorf("another study: %v", err)
	}
}

// A study that is stopped begins nothing more, and goes on where it was.
func TestItStops(t *testing.T) {
	dir := folder(t, file)
	r, err := prepared(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	if _, err := r.Do(t.Context(), stop); err == nil || ran(r) != 0 {
		t.Errorf("%d runs, %v", ran(r), err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r := done(t, dir, true); ran(r) != 6 {
		t.Errorf("%d runs, want 6", ran(r))
	}
}

// What another test has not measured is the failure of the cell that needs it, and of no other.
func TestWhatIsNotMeasuredFailsTheCellThatNeedsIt(t *testing.T) {
	r, err := prepared(t, folder(t, file), false, "open")
	if err != nil {
		t.Fatal(err)
	}
	failed, err := r.Do(t.Context(), nil)
	if out := fmt.Sprint(r.Out); failed != 2 || err != nil || !strings.Contains(out, "RATE: the test closed has no valid records yet") {
		t.Errorf("%d failed, %v:\n%s", failed, err, out)
	}
}

// What is wrong with a study is said with the field's name and what is allowed, before anything runs.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"title: 'A study'", "titel: 'A study'", `unknown field "titel"`},
		{"title: 'A study'", "title: 7", "cannot unmarshal number"},
		{"export const study", "export const studies", "exports no study"},
		{"repeat: 2", "repeat: -2", "a repeat of 1 or more"},
		{"measured: 'confirmed rate'", "measured: 'confirmed speed'", `study.tests[0]: columns[0].measured: there is no "confirmed speed"`},
		{"base: 'one'", "base: 'none'", `study.tests[0]: base: there is no cell "none"`},
		{"name: 'two'", "name: 'one'", `there is a cell "one" already`},
		{"published: { records: 400 }", "published: { record: 400 }", `study.tests[0]: cells[0]: published: there is no column "record"`},
		{"RATE: 1000 * SCALE", "'RA TE': 1", `settings: "RA TE" is not a name`},
		{"RATE: 1000 * SCALE", "BROKER_RUN: 1", `settings: "BROKER_RUN" is not a name`},
		{"RATE: 1000 * SCALE", "SPEED: 1", "test closed: ./script.js never reads SPEED: it reads ACKS, FADING, RATE"},
		{"test: 'closed', column", "test: 'opened', column", `settings.RATE: no test before this one has the cell "" with the column "records"`},
		{"'./common.js'", "'k6'", `import of "k6": a study imports files by relative paths only`},
		{"'./common.js'", "'./nothing.js'", "nothing.js"},
		{"script: './script.js', settings: { ACKS: 'leader' }, base", "script: './absent.js', settings: { ACKS: 'leader' }, base", "test closed: script ./absent.js"},
		{"measured: 'confirmed rate'", "measured: 'confirmed rate', ratio: 1", "cannot unmarshal number"},
		{"published: { records: 400 }", "processes: 2", "before: processes that run together need a run before them"},
		{"published: { records: 400 }", "before: {}, processes: [{ kill: 'soon' }, {}]", `processes[0].kill: time: invalid duration`},
		{"published: { records: 400 }", "before: {}, processes: [{ settings: { SPEED: 1 } }, {}]", "never reads SPEED"},
		{"tests: [", "tests: [], others: [", `unknown field "others"`},
		{"title: 'A study'", "title: nowhere", "nowhere is not defined"},
	} {
		if !strings.Contains(file, c.from) {
			t.Fatalf("the study has no %q", c.from)
		}
		dir := folder(t, strings.Replace(file, c.from, c.to, 1))
		if _, err := prepared(t, dir, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
			t.Errorf("%s: there is a folder", c.to)
		}
	}
	bare := strings.NewReplacer("RATE: 1000 * SCALE", "RATE: ''", "RATE: 3000 * SCALE", "RATE: undefined").Replace(file)
	if _, err := prepared(t, folder(t, bare), false, "closed"); err == nil || !strings.Contains(err.Error(), `nothing can be run: `) {
		t.Errorf("no values: %v", err)
	}
	if _, err := prepared(t, folder(t, file), false, "shut"); err == nil || !strings.Contains(err.Error(), "there are closed, open") {
		t.Errorf("--only: %v", err)
	}
}
