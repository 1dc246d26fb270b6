package capacity

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
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
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// bench runs probes without any process.
type bench struct {
	t      *testing.T
	folder string
	ran    []int
	become func(c sweep.Cell, o *sweep.Outcome)
	at     time.Time
}

func (b *bench) run(_ context.Context, c sweep.Cell) (sweep.Outcome, error) {
	b.ran = append(b.ran, c.Index)
	b.at = b.at.Add(time.Minute)
	o := sweep.Outcome{Cell: c, Started: b.at, Ended: b.at.Add(30 * time.Second)}
	b.become(c, &o)
	if o.Result != nil {
		f := report.Folder{Dir: filepath.Join(b.folder, sweep.CellsFolder), Name: c.Folder, Overwrite: true}
		if err := f.Write(o.Result, nil); err != nil {
			b.t.Error(err)
		}
	}
	return o, nil
}

// measured returns the result of a run with a rate and a latency.
func measured(rate, latency float64) *result.Result {
	h := &hist.Histogram{}
	h.RecordN(int64(latency), 1000)
	topic := result.Topic{
		Topic: "orders", OpenLoop: true, Counts: map[string]int64{"sent": 30_000, "confirmed": 30_000}, Trends: map[string]*hist.Histogram{"publish_latency": h},
		Options: result.Uses{}, Errors: []result.ErrorCount{}, Groups: []result.Group{},
	}
	topic.Spans = map[string]result.Span{"confirmed": {Last: 30_000 / rate}}
	r := &result.Result{Version: result.Version, Seconds: 5, Topics: []result.Topic{topic}}
	r.Verdict.Valid = true
	verdict.Describe(r)
	return r
}

// wall answers quickly up to a rate, and slowly beyond.
func (b *bench) wall(most int64) func(sweep.Cell, *sweep.Outcome) {
	return func(c sweep.Cell, o *sweep.Outcome) {
		rate, err := strconv.ParseInt(c.Settings.Of("RATE"), 10, 64)
		if err != nil {
			b.t.Error(err)
		}
		latency := 2e6
		if rate > most {
			latency = 9e8
		}
		o.Result = measured(float64(rate), latency)
		o.Result.Verdict.Latencies, o.Result.Verdict.Account = true, true
		its := &o.Result.Topics[0]
		its.Counts["due"], its.Spans["sent"] = its.Counts["sent"], its.Spans["confirmed"]
	}
}

func (b *bench) search(j *sweep.Journal) (*Run, *bytes.Buffer) {
	objective, err := measure.ParseObjective("publish_latency p50 < 10ms")
	if err != nil {
		b.t.Fatal(err)
	}
	var out bytes.Buffer
	return &Run{
		Search: Search{From: 100, Width: 0.05, Confidence: 0.95, Probes: 60}, Objectives: []measure.Objective{objective},
		Rate: "RATE", Length: "DURATION", WarmUp: time.Second, Window: 10 * time.Second, Columns: []measure.Measure{objective.Measure},
		Folder: b.folder, Journal: j, Cell: b.run, Out: &out,
	}, &out
}

func (b *bench) begin() *sweep.Journal {
	b.t.Helper()
	j, err := sweep.Begin(b.folder, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return j
}

func newProbing(t *testing.T) *bench {
	return &bench{t: t, folder: filepath.Join(t.TempDir(), "study"), at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// The whole of a search: its answer, the curve at shares of it, the table and the page; and one that is stopped goes on where it was.
func TestACapacityAndItsCurve(t *testing.T) {
	b := newProbing(t)
	become := b.wall(900)
	stop := make(chan struct{})
	b.become = func(c sweep.Cell, o *sweep.Outcome) {
		become(c, o)
		if c.Index == 5 {
			close(stop)
		}
	}
	s, _ := b.search(b.begin())
	if err := s.Do(t.Context(), stop); !errors.Is(err, sweep.ErrStopped) || len(b.ran) != 5 {
		t.Fatalf("%v after %v", err, b.ran)
	}
	b.become = become
	if err := s.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := sweep.Resume(b.folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, out := b.search(j)
	if err := s.Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(b.ran) || slices.Compact(slices.Clone(b.ran))[len(b.ran)-1] != len(b.ran) {
		t.Errorf("each probe is run once: %v", b.ran)
	}
	o := s.outcome
	if o.Finding != Found || o.Low > 900 || o.High < 900 || float64(o.High) > 1.05*float64(o.Low) {
		t.Errorf("%+v", o)
	}
	if want := "The capacity is between RATE=" + strconv.FormatInt(o.Low, 10) + " and " + strconv.FormatInt(o.High, 10); !strings.Contains(out.String(), want) {
		t.Errorf("no %q in %s", want, out)
	}
	text, err := os.ReadFile(filepath.Join(b.folder, sweep.TableFile))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 1+len(b.ran) {
		t.Fatalf("%d lines of %d probes: %v", len(lines), len(b.ran), err)
	}
	for i, share := range []string{"0.1", "0.5", "0.7", "0.9", "0.95"} {
		line := lines[len(lines)-5+i]
		of, _ := strconv.ParseFloat(share, 64)
		if rate, _ := strconv.ParseFloat(line[3], 64); line[4] != share || rate < of*float64(o.Low)-1 || rate > of*float64(o.Low)+1 || line[5] != "met" || line[6] == "" {
			t.Errorf("%v of the curve: %q", share, line)
		}
	}
	page, err := os.ReadFile(filepath.Join(b.folder, sweep.PageFile))
	for _, want := range []string{"The capacity is between", "share of the capacity", "95 %", "publish_latency p50 &lt; 10ms", `"id":"curve1"`} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("no %q on the page: %v", want, err)
		}
	}
}

// Where others load the system too, each probe and the answer say so.
func TestACapacityBesideOthers(t *testing.T) {
	b := newProbing(t)
	become := b.wall(900)
	b.become = func(c sweep.Cell, o *sweep.Outcome) {
		become(c, o)
		counts := o.Result.Topics[0].Counts
		counts["received"], counts["foreign"] = 6000, 3000
		note := reason.New(reason.Foreign, reason.Note, reason.Values{"why": "messages", "count": 3000})
		note.Topic = "orders"
		o.Result.Verdict.Add(note)
	}
	s, out := b.search(b.begin())
	if err := s.Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(b.folder, sweep.PageFile))
	if err != nil {
		t.Fatal(err)
	}
	const of = "orders: 3000 messages came from other tests"
	if text := out.String(); !strings.Contains(text, "RATE=100: met, "+of) || !strings.Contains(text, "It was not the only load: ") || !strings.Contains(string(page), of) {
		t.Error(text)
	}
}

// Where the probes end and the generator spoilt some, the answer says so.
func TestACapacityThatTheGeneratorSpoils(t *testing.T) {
	b := newProbing(t)
	become := b.wall(900)
	b.become = func(c sweep.Cell, o *sweep.Outcome) {
		become(c, o)
		o.Result.Verdict.Add(reason.New(reason.ArrivalsDropped, reason.Invalid, reason.Values{"why": "unserved", "count": 3}))
	}
	s, out := b.search(b.begin())
	s.Search.Probes = 2
	if err := s.Do(t.Context(), nil); err != nil || !strings.Contains(out.String(), "The probes ended before the capacity was known") {
		t.Errorf("%v: %s", err, out)
	}
}

// A probe without a result is made again, and a third time; a system that breaks after the search has no steady state.
func TestProbesThatGoWrong(t *testing.T) {
	b := newProbing(t)
	become, failures := b.wall(900), 0
	b.become = func(c sweep.Cell, o *sweep.Outcome) {
		if become(c, o); c.Index == 2 && failures < 2 {
			failures++
			o.Result, o.Error = nil, "broken on purpose"
		}
	}
	s, out := b.search(b.begin())
	if err := s.Do(t.Context(), nil); err != nil || s.outcome.Finding != Found || strings.Count(out.String(), "FAILED, and is run again: broken on purpose") != 2 {
		t.Errorf("%v: %s", err, out)
	}

	b = newProbing(t)
	b.become = func(_ sweep.Cell, o *sweep.Outcome) { o.Result, o.Error = nil, "broken on purpose" }
	s, _ = b.search(b.begin())
	if err := s.Do(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "3 probes at RATE=100 in a row have no result: broken on purpose") {
		t.Error(err)
	}

	b = newProbing(t)
	b.become = func(_ sweep.Cell, o *sweep.Outcome) {
		b.wall(900)(sweep.Cell{Settings: sweep.Values{{Name: "RATE", Value: "100"}}}, o)
	}
	s, _ = b.search(b.begin())
	if err := s.Do(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "does the script use RATE?") {
		t.Error(err)
	}

	b = newProbing(t)
	become = b.wall(900)
	b.become = func(c sweep.Cell, o *sweep.Outcome) {
		become(c, o)
		o.Result.Topics[0].OpenLoop, o.Result.Topics[0].ClosedLoop = false, true
	}
	s, _ = b.search(b.begin())
	if err := s.Do(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "closed loop") {
		t.Error(err)
	}
}

// What the journal has must be what the search asks for.
func TestAnotherSearchIsNotGoneOnWith(t *testing.T) {
	b := newProbing(t)
	b.become = b.wall(900)
	j := b.begin()
	cell := sweep.Cell{Index: 1, Repetition: 1, Folder: "001-RATE-100", Settings: sweep.Values{{Name: "RATE", Value: "7"}}}
	o := sweep.Outcome{Cell: cell, Result: measured(1, 1)}
	if err := (report.Folder{Dir: filepath.Join(b.folder, sweep.CellsFolder), Name: cell.Folder}).Write(o.Result, nil); err != nil {
		t.Fatal(err)
	}
	if err := j.Add(o); err != nil {
		t.Fatal(err)
	}
	s, _ := b.search(j)
	if err := s.Do(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "the journal has another probe") {
		t.Error(err)
	}
}
