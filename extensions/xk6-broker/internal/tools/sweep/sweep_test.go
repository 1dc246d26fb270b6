package sweep

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// bench runs cells without any process: it notes which, and leaves their results where a runner does.
type bench struct {
	t      *testing.T
	folder string
	ran    []int
	become func(c Cell, o *Outcome) // what becomes of a cell that is not as it should be
	at     time.Time
}

func (b *bench) run(_ context.Context, c Cell) (Outcome, error) {
	b.ran = append(b.ran, c.Index)
	b.at = b.at.Add(time.Minute)
	o := Outcome{Cell: c, Started: b.at, Ended: b.at.Add(30 * time.Second), Result: measured(1000+float64(c.Index), 1e6)}
	if b.become != nil {
		b.become(c, &o)
	}
	if o.Result != nil {
		f := report.Folder{Dir: filepath.Join(b.folder, CellsFolder), Name: c.Folder, Overwrite: true}
		if err := f.Write(o.Result, nil); err != nil {
			b.t.Error(err)
		}
	}
	return o, nil
}

func (b *bench) sweep(j *Journal, p Plan, columns []measure.Measure) (*Sweep, *bytes.Buffer) {
	var out bytes.Buffer
	return &Sweep{Plan: p, Columns: columns, Folder: b.folder, Journal: j, Run: b.run, Out: &out}, &out
}

func readCSV(t *testing.T, folder string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, TableFile))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// closed ends the work on a study, as the end of its process does.
func closed(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// A study that is stopped after its third cell, and cut in a later one, goes on from there: each cell that has a result is run once, and in the end everything is as if it had never been stopped.
func TestAStudyGoesOn(t *testing.T) {
	b := &bench{t: t, folder: filepath.Join(t.TempDir(), "study"), at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	p, columns := planOf(t, 2, 5, "RATE=1,2", "SIZE=1,2"), columnsOf(t, "confirmed rate", "lost")
	j, err := Begin(b.folder, p.Asked())
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	b.become = func(c Cell, _ *Outcome) {
		if c.Index == 3 {
			close(stop)
		}
	}
	s, out := b.sweep(j, p, columns)
	if _, err := s.Do(t.Context(), stop); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	if lines := readCSV(t, b.folder); len(lines) != 4 {
		t.Errorf("%d lines of three cells", len(lines))
	}
	if text := out.String(); !strings.Contains(text, "[3/8] repetition 1 of 2: ") || !strings.Contains(text, "about 3m0s left") || !strings.Contains(text, "confirmed rate 1002/s") {
		t.Error(text)
	}

	b.become = func(c Cell, o *Outcome) {
		switch c.Index {
		case 5:
			o.Result, o.Error, o.ExitCode = nil, "the broker was away", 107
		case 7:
			o.Result, o.Error, o.Cut = nil, "it was ended", true
		}
	}
	closed(t, j)
	if j, err = Resume(b.folder, p.Asked()); err != nil {
		t.Fatal(err)
	}
	s, out = b.sweep(j, p, columns)
	if failed, err := s.Do(t.Context(), nil); !errors.Is(err, ErrStopped) || failed != 1 {
		t.Fatal(failed, err)
	}
	if text := out.String(); !strings.Contains(text, "3 are done") || !strings.Contains(text, "FAILED: the broker was away") || strings.Contains(text, "[3/8]") {
		t.Error(text)
	}
	lines := readCSV(t, b.folder)
	if failed := lines[5]; len(lines) != 7 || failed[0] != "5" || failed[len(failed)-1] != "the broker was away" || failed[6] != "" {
		t.Error(lines)
	}

	b.become = nil
	closed(t, j)
	if j, err = Resume(b.folder, p.Asked()); err != nil {
		t.Fatal(err)
	}
	s, _ = b.sweep(j, p, columns)
	if failed, err := s.Do(t.Context(), nil); err != nil || failed != 0 {
		t.Fatal(failed, err)
	}
	if want := []int{1, 2, 3, 4, 5, 6, 7, 5, 7, 8}; !slices.Equal(b.ran, want) {
		t.Errorf("ran %v, want %v", b.ran, want)
	}
	lines = readCSV(t, b.folder)
	if head := strings.Join(lines[0], ","); head != "cell,started,seconds,repetition,RATE,SIZE,confirmed rate (/s),lost,valid,confirmed means,exit code,error" {
		t.Error(head)
	}
	for i, index := range []string{"1", "2", "3", "4", "6", "5", "7", "8"} { // in the order of time
		line := lines[i+1]
		if rate, err := strconv.ParseFloat(line[6], 64); err != nil || strconv.FormatFloat(rate, 'f', 6, 64) != "100"+index+".000000" {
			t.Errorf("rate %s, %v", line[6], err)
		}
		if line[0] != index || line[7] != "" || line[8] != "true" || line[9] != "accepted" || line[2] != "30.0" {
			t.Errorf("%v", line)
		}
	}
	page, err := os.ReadFile(filepath.Join(b.folder, PageFile))
	if err != nil || !strings.Contains(string(page), "8 of 8 runs") || strings.Count(string(page), `">log</a>`) != 8 {
		t.Errorf("%v", err)
	}
}

// What is there is not written over, and what is another study is not gone on with: the error names what differs.
func TestAFolderThatIsTaken(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "deep", "study")
	asked := []Fact{{"script", "a.js"}, {"--set RATE", "1, 2"}, {"--zip", "A,B"}}
	j, err := Begin(folder, asked)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(folder, asked); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Error(err)
	}
	if _, err := Resume(folder, asked); err == nil || !strings.HasPrefix(err.Error(), "another process is at work on the study in "+folder) {
		t.Error(err)
	}
	closed(t, j)
	if j, err = Resume(folder, asked); err != nil {
		t.Fatal(err)
	}
	closed(t, j)
	_, err = Resume(folder, []Fact{{"script", "a.js"}, {"--set RATE", "1, 3"}, {"--set SIZE", "5"}})
	if err == nil || !strings.HasSuffix(err.Error(), "--set RATE: it was 1, 2, and is 1, 3; --set SIZE: it was nothing, and is 5; --zip: it was A,B, and is not given") {
		t.Error(err)
	}
	if _, err := Resume(filepath.Dir(folder), asked); err == nil || !strings.Contains(err.Error(), "there is no study") {
		t.Error(err)
	}
	for text, want := range map[string]string{"{": "damaged", `{"version":7}`: "of version 7"} {
		if err := os.WriteFile(filepath.Join(folder, JournalFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Resume(folder, asked); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// A cell whose results somebody has removed is run again.
func TestResultsThatAreGone(t *testing.T) {
	b := &bench{t: t, folder: filepath.Join(t.TempDir(), "study")}
	p := planOf(t, 1, 5, "RATE=1,2,3")
	j, err := Begin(b.folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := b.sweep(j, p, columnsOf(t, "confirmed rate"))
	if _, err := s.Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(b.folder, CellsFolder, p.Cells()[1].Folder)); err != nil {
		t.Fatal(err)
	}
	s, _ = b.sweep(j, p, columnsOf(t, "confirmed rate"))
	if _, err := s.Do(t.Context(), nil); err != nil || !slices.Equal(b.ran, []int{1, 2, 3, 2}) {
		t.Error(b.ran, err)
	}
}

func columnsOf(t *testing.T, names ...string) (all []measure.Measure) {
	t.Helper()
	for _, name := range names {
		m, err := measure.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// measured returns the result of a run with a rate and a latency.
func measured(rate, latency float64) *result.Result {
	h := &hist.Histogram{}
	h.RecordN(int64(latency), 1000)
	topic := result.Topic{
		Topic: "orders", OpenLoop: true, Counts: map[string]int64{"sent": 30_000, "confirmed": 30_000}, Trends: map[string]*hist.Histogram{"publish_latency": h},
		Options: result.Uses{}, Errors: []result.ErrorCount{}, Groups: []result.Group{},
	}
	topic.Proves(result.Proof{Confirm: "accepted"})
	topic.Spans = map[string]result.Span{"confirmed": {Last: 30_000 / rate}}
	r := &result.Result{Version: result.Version, Seconds: 5, Topics: []result.Topic{topic}}
	r.Verdict.Valid = true
	verdict.Describe(r)
	return r
}

func pageOf(t *testing.T, b *bench, p Plan, columns ...string) (*Sweep, string) {
	t.Helper()
	j, err := Begin(b.folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := b.sweep(j, p, columnsOf(t, columns...))
	if _, err := s.Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(b.folder, PageFile))
	if err != nil {
		t.Fatal(err)
	}
	return s, string(page)
}

func TestPage_ConfirmationsThatProveDifferentThings_Remark(t *testing.T) {
	for _, same := range []bool{true, false} {
		b := &bench{t: t, folder: filepath.Join(t.TempDir(), "study")}
		b.become = func(c Cell, o *Outcome) {
			if c.Settings.Of("ACKS") == "none" && !same {
				o.Result.Topics[0].Proofs = nil
				o.Result.Topics[0].Proves(result.Proof{Confirm: "unconfirmed", How: "acks=none"})
			}
		}
		_, page := pageOf(t, b, planOf(t, 1, 5, "ACKS=all,none"), "confirmed rate")
		if strings.Contains(page, "compare only rows that prove the same") == same {
			t.Errorf("the same: %v, and the page says otherwise", same)
		}
	}
}

// The chart is over the axis with the most points, with a line for each combination of the others.
func TestPage_TwoAxes_Chart(t *testing.T) {
	b := &bench{t: t, folder: filepath.Join(t.TempDir(), "study")}
	b.become = func(c Cell, o *Outcome) { o.Result = measured(1, 1e6*float64(c.Repetition)) }
	s, _ := pageOf(t, b, planOf(t, 3, 5, "URL=a,b", "RATE=10,20,1000"), "publish_latency p50", "lost")
	axes, _ := s.Plan.Axes()
	charts := s.charts(axes, s.entries())
	if len(charts) != 1 || len(charts[0].Lines) != 2 || charts[0].Lines[1].Label != "URL=b" || !slices.Equal(charts[0].X, []float64{10, 20, 1000}) || !charts[0].Decades {
		t.Fatalf("%+v", charts)
	}
	for i := range 3 {
		if l := charts[0].Lines[1]; *l.Low[i] > 1.01 || *l.Low[i] < 0.99 || *l.Values[i] > 2.01 || *l.Values[i] < 1.99 || *l.High[i] > 3.01 || *l.High[i] < 2.99 {
			t.Errorf("%v %v %v", *l.Low[i], *l.Values[i], *l.High[i])
		}
	}
}

// A broker that becomes slower in each cell drifts; one whose numbers depend on its settings, and on chance, does not.
func TestPage_Drift_FoundInRepetitions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for drifts, latency := range map[bool]func(n int, c Cell) float64{
		true: func(n int, _ Cell) float64 { return 1e6 * math.Pow(1.01, float64(n)) },
		false: func(_ int, c Cell) float64 {
			return 1e6 * float64(len(c.Settings.Of("SIZE"))) * (1 + 0.1*random.Float64())
		},
	} {
		b := &bench{t: t, folder: filepath.Join(t.TempDir(), "study"), at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		b.become = func(c Cell, o *Outcome) { o.Result = measured(1, latency(c.Index, c)) }
		_, page := pageOf(t, b, planOf(t, 8, 5, "SIZE=1,10,100"), "publish_latency p50")
		if found := strings.Contains(page, "publish_latency p50 grew by"); found != drifts {
			t.Errorf("drift %v, found %v", drifts, found)
		}
	}
}
