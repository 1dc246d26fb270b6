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
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict/reason"
)

// bench runs probes without a process.
type bench struct {
	t      *testing.T
	folder string
	ran    []string
	become func(c cells.Cell, o *cells.Outcome)
	at     time.Time
}

func (b *bench) run(_ context.Context, c cells.Cell) (cells.Outcome, error) {
	b.ran = append(b.ran, c.Folder)
	b.at = b.at.Add(time.Minute)
	o := cells.Outcome{Cell: c, Started: b.at}
	b.become(c, &o)
	if o.Result != nil {
		f := report.Folder{Dir: filepath.Join(b.folder, cells.Folder), Name: c.Folder, Overwrite: true}
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
func (b *bench) wall(most int64) func(cells.Cell, *cells.Outcome) {
	return func(c cells.Cell, o *cells.Outcome) {
		rate, err := strconv.ParseInt(c.Settings["RATE"], 10, 64)
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

// search prepares a run whose probes take no time.
func (b *bench) search(resume bool) (*Run, *bytes.Buffer) {
	b.t.Helper()
	var out bytes.Buffer
	r := &Run{
		Search: Search{From: 100, Probes: 60}, Width: "5%", Confidence: "95%", Objectives: []string{"publish_latency p50 < 10ms"},
		Rate: "RATE", Length: "DURATION", WarmUp: time.Second, Window: 10 * time.Second,
	}
	r.Study = cells.Study{Folder: b.folder, Run: b.run, Out: &out}
	if err := r.check(); err != nil {
		b.t.Fatal(err)
	}
	r.Resume = resume
	if err := r.Open("probed", cells.Facts{}); err != nil {
		b.t.Fatal(err)
	}
	return r, &out
}

func newProbing(t *testing.T) *bench {
	return &bench{t: t, folder: filepath.Join(t.TempDir(), "study"), at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// A stopped search continues where it was. The page has its answer and the curve at shares of it.
func TestRun_CapacityAndCurve(t *testing.T) {
	b := newProbing(t)
	become := b.wall(900)
	stop := make(chan struct{})
	b.become = func(c cells.Cell, o *cells.Outcome) {
		become(c, o)
		if len(b.ran) == 5 {
			close(stop)
		}
	}
	r, _ := b.search(false)
	r.Stop = stop
	if err := r.search(t.Context()); !errors.Is(err, cells.ErrStopped) || len(b.ran) != 5 {
		t.Fatalf("%v after %v", err, b.ran)
	}
	b.become = become
	r, out := b.search(true)
	if err := r.search(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(b.ran) || len(slices.Compact(slices.Clone(b.ran))) != len(r.probes) {
		t.Errorf("each probe runs once: %v", b.ran)
	}
	o := r.outcome
	if o.Finding != Found || o.Low > 900 || o.High < 900 || float64(o.High) > 1.05*float64(o.Low) {
		t.Errorf("%+v", o)
	}
	want := "The capacity is between RATE=" + strconv.FormatInt(o.Low, 10) + " and " + strconv.FormatInt(o.High, 10)
	if !strings.Contains(out.String(), want) {
		t.Errorf("no %q in %s", want, out)
	}
	text, err := os.ReadFile(filepath.Join(b.folder, cells.CSVFile))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 1+len(r.probes) {
		t.Fatalf("%d lines of %d probes: %v", len(lines), len(r.probes), err)
	}
	for i, share := range []string{"0.1", "0.5", "0.7", "0.9", "0.95"} {
		line := lines[len(lines)-5+i]
		of, _ := strconv.ParseFloat(share, 64)
		if rate, _ := strconv.ParseFloat(line[1], 64); line[2] != share || rate < of*float64(o.Low)-1 || rate > of*float64(o.Low)+1 || line[3] != "met" {
			t.Errorf("%v of the curve: %q", share, line)
		}
	}
	page, err := os.ReadFile(filepath.Join(b.folder, cells.PageFile))
	for _, want := range []string{"The capacity is between", "share of the capacity", `"title":"publish_latency p50"`} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("no %q on the page: %v", want, err)
		}
	}
}

func TestRun_FewProbes_Undecided(t *testing.T) {
	b := newProbing(t)
	become := b.wall(900)
	b.become = func(c cells.Cell, o *cells.Outcome) {
		become(c, o)
		o.Result.Verdict.Add(reason.New(reason.ArrivalsDropped, reason.Invalid, reason.Values{"why": "unserved", "count": 3}))
	}
	r, out := b.search(false)
	r.Search.Probes = 2
	if err := r.search(t.Context()); err != nil || !strings.Contains(out.String(), "The probes ended before the capacity was known") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestRun_WrongProbe_Error(t *testing.T) {
	for want, become := range map[string]func(b *bench, c cells.Cell, o *cells.Outcome){
		"RATE=100 has no result: broken on purpose": func(_ *bench, _ cells.Cell, o *cells.Outcome) { o.Error = "broken on purpose" },
		"does the script use RATE?": func(b *bench, _ cells.Cell, o *cells.Outcome) {
			b.wall(900)(cells.Cell{Settings: cells.Settings{"RATE": "100"}}, o)
		},
		"closed loop": func(b *bench, c cells.Cell, o *cells.Outcome) {
			b.wall(900)(c, o)
			o.Result.Topics[0].OpenLoop, o.Result.Topics[0].ClosedLoop = false, true
		},
	} {
		b := newProbing(t)
		b.become = func(c cells.Cell, o *cells.Outcome) { become(b, c, o) }
		r, _ := b.search(false)
		if err := r.search(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
