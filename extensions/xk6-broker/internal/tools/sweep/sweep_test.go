package sweep

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
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

// The test's own program is k6 if it is called as k6 deps.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "deps" {
		path, _ := filepath.Abs(os.Args[len(os.Args)-1])
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"imports": []string{"file://" + path}})
		return
	}
	os.Exit(m.Run())
}

// sweepOf is a sweep whose runs have a latency, and take no time.
func sweepOf(t *testing.T, latency func(n int, c cells.Cell) float64, sets ...string) *Sweep {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "script.js")
	if err := os.WriteFile(script, []byte("URL NAME RATE SIZE"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Sweep{Script: script, Sets: sets, Columns: []string{"publish_latency p50", "lost"}}
	s.Repeat, s.Seed, s.Folder, s.Out = 1, 5, filepath.Join(dir, "study"), &strings.Builder{}
	now, n := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 0
	s.Study.Run = func(_ context.Context, c cells.Cell) (cells.Outcome, error) {
		n++
		now = now.Add(time.Minute)
		h := &hist.Histogram{}
		h.RecordN(int64(latency(n, c)), 1000)
		topic := result.Topic{
			Topic: "orders", OpenLoop: true, Counts: map[string]int64{"sent": 30_000}, Trends: map[string]*hist.Histogram{"publish_latency": h},
			Options: result.Uses{}, Errors: []result.ErrorCount{}, Groups: []result.Group{},
		}
		r := &result.Result{Version: result.Version, Seconds: 5, Topics: []result.Topic{topic}, Verdict: result.Verdict{Valid: true}}
		verdict.Describe(r)
		folder := report.Folder{Dir: filepath.Join(s.Folder, cells.Folder), Name: c.Folder}
		return cells.Outcome{Cell: c, Started: now, Ended: now, Result: r}, folder.Write(r, nil)
	}
	return s
}

func constant(int, cells.Cell) float64 { return 1e6 }

// Each repetition has every combination once, in an order of its own, which the seed decides.
func TestSweep_Repetitions_EachWhole(t *testing.T) {
	order := func(seed uint64) (all []string) {
		s := sweepOf(t, func(_ int, c cells.Cell) float64 {
			all = append(all, c.Settings.String())
			return 1e6
		}, "RATE=1,2,3", "SIZE=10,20")
		s.Repeat, s.Seed = 3, seed
		if err := s.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		return all
	}
	one := order(1)
	if len(one) != 18 || !slices.Equal(one, order(1)) || slices.Equal(one, order(2)) {
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

func TestParse_ValueWithComma(t *testing.T) {
	axes, err := parse([]string{`URL="kafka://a:1,b:2",nats://c=d`})
	if err != nil || !slices.Equal(axes[0].values, []string{"kafka://a:1,b:2", "nats://c=d"}) {
		t.Error(axes, err)
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
		s := sweepOf(t, constant, c.sets...)
		if err := s.Do(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.sets, err, c.want)
		}
		if _, err := os.Stat(s.Folder); err == nil {
			t.Errorf("%v: there is a folder", c.sets)
		}
	}
}

// The table of all runs has a column for each setting; the chart is over the axis with the most points.
func TestSweep_Page(t *testing.T) {
	s := sweepOf(t, func(_ int, c cells.Cell) float64 { return 1.23e6 * float64(c.Repetition) }, "URL=a,b", "RATE=10,20,1000")
	s.Repeat = 3
	if err := s.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for file, wants := range map[string][]string{
		cells.PageFile:   {`"ticks":["10","20","1000"]`, `"label":"URL=b"`, ">log</a>"},
		cells.TablesFile: {"| URL=a RATE=20 | 2.46ms (1.23ms to 3.69ms) |"},
		cells.CSVFile:    {"run,cell,repetition,URL,RATE,publish_latency p50,verdict,", "URL=b RATE=1000,2,b,1000,24"},
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

// A broker that becomes slower in each cell drifts; a broker whose numbers depend on settings and chance does not.
func TestSweep_Drift_FoundInRepetitions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for drifts, latency := range map[bool]func(n int, c cells.Cell) float64{
		true: func(n int, _ cells.Cell) float64 { return 1e6 * math.Pow(1.01, float64(n)) },
		false: func(_ int, c cells.Cell) float64 {
			return 1e6 * float64(len(c.Settings.Get("SIZE"))) * (1 + 0.1*random.Float64())
		},
	} {
		s := sweepOf(t, latency, "SIZE=1,10,100")
		s.Repeat = 6
		if err := s.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(s.Folder, cells.TablesFile))
		if found := strings.Contains(string(page), "publish_latency p50 changed by +"); err != nil || found != drifts {
			t.Errorf("drift %v, found %v, %v", drifts, found, err)
		}
	}
}
