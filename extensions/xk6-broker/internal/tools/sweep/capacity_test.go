package sweep

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

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/capacity"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/measure"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// wall answers quickly up to a rate, and slowly beyond.
func (b *bench) wall(most int64) func(Cell, *Outcome) {
	return func(c Cell, o *Outcome) {
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

func (b *bench) capacity(j *Journal) (*Capacity, *bytes.Buffer) {
	objective, err := measure.ParseObjective("publish_latency p50 < 10ms")
	if err != nil {
		b.t.Fatal(err)
	}
	var out bytes.Buffer
	return &Capacity{
		Search: capacity.Search{From: 100, Width: 0.05, Confidence: 0.95, Probes: 60}, Objectives: []measure.Objective{objective},
		Rate: "RATE", Length: "DURATION", WarmUp: time.Second, Window: 10 * time.Second, Columns: columnsOf(b.t, "publish_latency p50"),
		Folder: b.folder, Journal: j, Run: b.run, Out: &out,
	}, &out
}

func (b *bench) begin() *Journal {
	b.t.Helper()
	j, err := Begin(b.folder, nil)
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
	b.become = func(c Cell, o *Outcome) {
		become(c, o)
		if c.Index == 5 {
			close(stop)
		}
	}
	s, _ := b.capacity(b.begin())
	if err := s.Do(t.Context(), stop); !errors.Is(err, ErrStopped) || len(b.ran) != 5 {
		t.Fatalf("%v after %v", err, b.ran)
	}
	b.become = become
	closed(t, s.Journal)
	j, err := Resume(b.folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, out := b.capacity(j)
	if err := s.Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(b.ran) || slices.Compact(slices.Clone(b.ran))[len(b.ran)-1] != len(b.ran) {
		t.Errorf("each probe is run once: %v", b.ran)
	}
	o := s.outcome
	if o.Finding != capacity.Found || o.Low > 900 || o.High < 900 || float64(o.High) > 1.05*float64(o.Low) {
		t.Errorf("%+v", o)
	}
	if want := "The capacity is between RATE=" + strconv.FormatInt(o.Low, 10) + " and " + strconv.FormatInt(o.High, 10); !strings.Contains(out.String(), want) {
		t.Errorf("no %q in %s", want, out)
	}
	text, err := os.ReadFile(filepath.Join(b.folder, TableFile))
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
		if rate, _ := strconv.ParseFloat(line[3], 64); line[4] != share || rate < of*float64(o.Low)-1 || rate > of*float64(o.Low)+1 || line[5] != "met" || line[7] == "" {
			t.Errorf("%v of the curve: %q", share, line)
		}
	}
	page, err := os.ReadFile(filepath.Join(b.folder, PageFile))
	for _, want := range []string{"The capacity is between", "The rate-latency curve", "95 %", "publish_latency p50 &lt; 10ms", `"id":"curve"`} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("no %q on the page: %v", want, err)
		}
	}
}

// Where others load the system too, each probe and the answer say so.
func TestACapacityBesideOthers(t *testing.T) {
	b := newProbing(t)
	become := b.wall(900)
	b.become = func(c Cell, o *Outcome) {
		become(c, o)
		counts := o.Result.Topics[0].Counts
		counts["received"], counts["foreign"] = 6000, 3000
	}
	s, out := b.capacity(b.begin())
	if err := s.Do(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(b.folder, PageFile))
	if err != nil {
		t.Fatal(err)
	}
	const of = "orders: 3000 messages came from other tests"
	if text := out.String(); !strings.Contains(text, "RATE=100: met, "+of) || !strings.Contains(text, "It was not the only load: in ") || !strings.Contains(string(page), of) {
		t.Error(text)
	}
}

// Where the probes end and the generator spoilt some, the answer says so.
func TestACapacityThatTheGeneratorSpoils(t *testing.T) {
	b := newProbing(t)
	become := b.wall(900)
	b.become = func(c Cell, o *Outcome) {
		become(c, o)
		o.Result.Verdict.Add(reason.New(reason.ArrivalsDropped, reason.Invalid, reason.Values{"why": "unserved", "count": 3}))
	}
	s, out := b.capacity(b.begin())
	s.Search.Probes = 2
	if err := s.Do(t.Context(), nil); err != nil || !strings.Contains(out.String(), "of what the generator spoilt nothing is known: 3 arrivals were due but never got an iteration") {
		t.Errorf("%v: %s", err, out)
	}
}

// A probe without a result is made again, and a third time; a system that breaks after the search has no steady state.
func TestProbesThatGoWrong(t *testing.T) {
	b := newProbing(t)
	become, failures := b.wall(900), 0
	b.become = func(c Cell, o *Outcome) {
		if become(c, o); c.Index == 2 && failures < 2 {
			failures++
			o.Result, o.Error = nil, "broken on purpose"
		}
	}
	s, out := b.capacity(b.begin())
	if err := s.Do(t.Context(), nil); err != nil || s.outcome.Finding != capacity.Found || strings.Count(out.String(), "FAILED, and is run again: broken on purpose") != 2 {
		t.Errorf("%v: %s", err, out)
	}

	b = newProbing(t)
	b.become = func(_ Cell, o *Outcome) { o.Result, o.Error = nil, "broken on purpose" }
	s, _ = b.capacity(b.begin())
	if err := s.Do(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "3 probes at RATE=100 in a row have no result: broken on purpose") {
		t.Error(err)
	}

	b = newProbing(t)
	b.become = func(_ Cell, o *Outcome) { b.wall(900)(Cell{Settings: Values{{Name: "RATE", Value: "100"}}}, o) }
	s, _ = b.capacity(b.begin())
	if err := s.Do(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "the script does not go by RATE") {
		t.Error(err)
	}

	b = newProbing(t)
	become = b.wall(900)
	b.become = func(c Cell, o *Outcome) {
		become(c, o)
		o.Result.Topics[0].OpenLoop, o.Result.Topics[0].ClosedLoop = false, true
	}
	s, _ = b.capacity(b.begin())
	if err := s.Do(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "closed loop") {
		t.Error(err)
	}
}

// What the journal has must be what the search asks for.
func TestAnotherSearchIsNotGoneOnWith(t *testing.T) {
	b := newProbing(t)
	b.become = b.wall(900)
	j := b.begin()
	cell := Cell{Index: 1, Repetition: 1, Folder: "001-RATE-100", Settings: Values{{Name: "RATE", Value: "7"}}}
	o := Outcome{Cell: cell, Result: measured(1, 1)}
	if err := (report.Folder{Dir: filepath.Join(b.folder, CellsFolder), Name: cell.Folder}).Write(o.Result, nil); err != nil {
		t.Fatal(err)
	}
	if err := j.Add(o); err != nil {
		t.Fatal(err)
	}
	s, _ := b.capacity(j)
	if err := s.Do(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "the journal has another probe") {
		t.Error(err)
	}
}
