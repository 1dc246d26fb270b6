package studies

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/cells"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// sweepOf is a sweep whose runs have a latency, and take no time.
func sweepOf(t *testing.T, latency func(c cells.Cell) float64, sets ...string) (*Run, error) {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "script.js")
	if err := os.WriteFile(script, []byte("URL NAME RATE SIZE"), 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := Sweep(script, sets, []string{"publish_latency p50", "lost"})
	s := &Run{Data: data, Repeat: 1}
	s.Folder, s.Out = filepath.Join(dir, "study"), &strings.Builder{}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.Study.Run = func(_ context.Context, c cells.Cell) (cells.Outcome, error) {
		now = now.Add(time.Minute)
		h := &hist.Histogram{}
		h.RecordN(int64(latency(c)), 1000)
		topic := result.Topic{
			Topic: "orders", OpenLoop: true, Counts: map[string]int64{"sent": 30_000}, Trends: map[string]*hist.Histogram{"publish_latency": h},
			Options: result.Uses{}, Errors: []result.ErrorCount{}, Groups: []result.Group{},
		}
		r := &result.Result{Version: result.Version, Seconds: 5, Topics: []result.Topic{topic}, Verdict: result.Verdict{Valid: true}}
		verdict.Describe(r)
		folder := report.Folder{Dir: filepath.Join(s.Folder, cells.Folder), Name: c.Folder}
		return cells.Outcome{Cell: c, Started: now, Result: r}, folder.Write(r, nil)
	}
	return s, err
}

func constant(cells.Cell) float64 { return 1e6 }

// Each repetition has every combination once, in an order of its own.
func TestSweep_Repetitions_EachWhole(t *testing.T) {
	var one []string
	s, err := sweepOf(t, func(c cells.Cell) float64 {
		one = append(one, c.Settings.String())
		return 1e6
	}, "RATE=1,2,3", "SIZE=10,20")
	if err != nil {
		t.Fatal(err)
	}
	if s.Repeat = 3; s.Do(t.Context()) != nil || len(one) != 18 {
		t.Error(one)
	}
	orders := map[string]bool{}
	for repetition := range slices.Chunk(one, 6) {
		orders[strings.Join(repetition, ",")] = true
		whole := slices.Compact(slices.Sorted(slices.Values(repetition)))
		if len(whole) != 6 {
			t.Error(repetition)
		}
	}
	if len(orders) < 3 {
		t.Errorf("%d orders", len(orders))
	}
}

func TestSweep_ValueWithComma(t *testing.T) {
	s, err := Sweep("script.js", []string{`URL="kafka://a:1,b:2",nats://c=d`}, nil)
	if err != nil || s.Tests[0].Cells[0].Settings["URL"] != "kafka://a:1,b:2" || s.Tests[0].Cells[1].Settings["URL"] != "nats://c=d" {
		t.Error(s, err)
	}
}

func TestSweep_Mistakes(t *testing.T) {
	for _, c := range []struct {
		want string
		sets []string
	}{
		{"nothing varies", nil},
		{`there are two cells "RATE=1"`, []string{"RATE=1,2,1"}},
		{`there are two cells "URL=nats://xxxxx@h"`, []string{"URL=nats://u:one@h,nats://u:two@h"}},
		{"--set RATE is given twice", []string{"RATE=1", "RATE=2"}},
		{"BROKER_REPORT_DIR: the script never reads it, or each run has its own", []string{"BROKER_REPORT_DIR=x"}},
		{"RATTE: the script never reads it", []string{"RATTE=1"}},
		{"write NAME=VALUE,VALUE", []string{"RATE"}},
		{"write NAME=VALUE,VALUE", []string{"=1"}},
		{"write NAME=VALUE,VALUE", []string{`RATE="1`}},
		{"write NAME=VALUE,VALUE", []string{"RATE="}},
	} {
		s, err := sweepOf(t, constant, c.sets...)
		if err == nil {
			err = s.Do(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.sets, err, c.want)
		}
		if _, err := os.Stat(s.Folder); err == nil {
			t.Errorf("%v: there is a folder", c.sets)
		}
	}
}

// The table of all runs has a column for each setting; the chart is over the axis with the most points.
func TestSweep_Page(t *testing.T) {
	s, err := sweepOf(t, func(c cells.Cell) float64 { return 1.23e6 * float64(c.Repetition) }, "URL=a,b", "RATE=10,20,1000")
	if err != nil {
		t.Fatal(err)
	}
	s.Repeat = 3
	if err := s.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for file, wants := range map[string][]string{
		cells.PageFile:   {`"ticks":["10","20","1000"]`, `"label":"URL=b"`, ">log</a>"},
		cells.TablesFile: {"| RATE=20 URL=a | 2.46ms (1.23ms…3.69ms) |"},
		cells.CSVFile:    {"run,cell,repetition,URL,RATE,publish_latency p50,verdict,", "RATE=1000 URL=b,2,b,1000,24"},
	} {
		text, err := os.ReadFile(filepath.Join(s.Folder, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %q in %s", file, want, text)
			}
		}
	}
}
