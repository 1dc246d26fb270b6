package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// The test's own program is k6, too, where it is called as that: what it does is what the setting KIND says.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && slices.Contains([]string{"run", "deps", "inspect"}, os.Args[1]) {
		os.Exit(fakeK6(os.Args[1], os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

func fakeK6(command, script string) int {
	kind := os.Getenv("KIND")
	if command != "run" {
		if command == "deps" {
			path, _ := filepath.Abs(script)
			_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"imports": []string{"k6/x/broker", "file://" + path}})
		}
		if of := os.Getenv("BROKER_PROCESSES"); command == "inspect" && of != "" {
			fmt.Fprintf(os.Stderr, "level=error msg=%q\n", "BROKER_PROCESSES is "+of)
			return 107
		}
		if kind == "refused" {
			fmt.Fprintln(os.Stderr, `time="2026-01-02T03:04:05Z" level=error msg="KIND: \"refused\" is none\n\tat script.js:1" hint="script exception"`)
			return 107
		}
		return 0
	}
	fmt.Printf("running %s as %s in %s\n", script, kind, os.Getenv("BROKER_REPORT_NAME"))
	write := func() {
		f := report.Folder{Dir: os.Getenv("BROKER_REPORT_DIR"), Name: os.Getenv("BROKER_REPORT_NAME")}
		r := measured(1000, 1e6)
		if r.Name, r.Started = f.Name, time.Now(); os.Getenv("KIND") == "earlier" {
			r.Started = r.Started.Add(-time.Hour)
		}
		if err := f.Write(r, &account.Ledger{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	switch kind {
	case "fails":
		fmt.Fprintln(os.Stderr, `time="2026-01-02T03:04:05Z" level=error msg="no broker at nats://u:hush@h" hint="x"`)
		return 107
	case "misconfigured":
		fmt.Fprintln(os.Stderr, `time="2026-01-02T03:04:05Z" level=error msg="There were problems with the specified script configuration:\n\t- scenario p has no rate\n"`)
		return 104
	case "silent":
		return 0
	case "waits":
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		fmt.Println("waiting")
		<-interrupted
		write()
		return 105
	case "breaks":
		write()
		fmt.Println(`time="2026-01-02T03:04:05Z" level=error msg="an exception"`)
		return 107
	case "thresholds":
		write()
		return 99
	}
	write()
	return 0
}

func runnerOf(t *testing.T) *Runner {
	t.Helper()
	k6, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{K6: k6, Script: "script.js", Folder: filepath.Join(t.TempDir(), CellsFolder)}
}

func cellOf(kind string) Cell {
	return Cell{Index: 1, Repetition: 1, Settings: Values{{Name: "KIND", Value: kind}}, Folder: "1-KIND_" + kind}
}

// files are those of a cell's folder.
func files(t *testing.T, r *Runner, c Cell) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(r.Path(c))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A cell that does what it should leaves its result, what it printed and nothing large, unless all is to be kept.
func TestACell(t *testing.T) {
	r, c := runnerOf(t), cellOf("good")
	o, err := r.Run(t.Context(), c)
	if err != nil || o.Error != "" || o.Result == nil || o.ExitCode != 0 || o.Cut || o.Ended.Before(o.Started) {
		t.Fatalf("%+v %v", o, err)
	}
	if got := files(t, r, c); !slices.Equal(got, []string{"k6.log", "report.html", "summary.json"}) {
		t.Error(got)
	}
	if log, _ := os.ReadFile(filepath.Join(r.Path(c), LogFile)); !strings.Contains(string(log), "running script.js as good in 1-KIND_good") {
		t.Errorf("%s", log)
	}
	r.Keep = true
	if o, err = r.Run(t.Context(), c); err != nil || o.Result == nil { // in place of what was there
		t.Fatalf("%+v %v", o, err)
	}
	if got := files(t, r, c); !slices.Contains(got, "ledger.bin") || !slices.Contains(got, "orders.publish_latency.hgrm") {
		t.Error(got)
	}
	if entries, _ := os.ReadDir(r.Folder); len(entries) != 1 {
		t.Error("something was left beside the cells' folders:", entries)
	}
}

// Whatever ends a cell is told as the cell's, with the reason, and is no error of the study.
func TestWhatEndsACell(t *testing.T) {
	for _, c := range []struct {
		kind, reset, before, want string
		code                      int
		ran, result               bool
	}{
		{kind: "fails", want: "k6 ended with exit code 107: no broker at nats://u:xxxxx@h", code: 107, ran: true},
		{kind: "breaks", want: "k6 ended with exit code 107: an exception", code: 107, ran: true}, // what it left is of no whole test
		{kind: "misconfigured", want: "There were problems with the specified script configuration: - scenario p has no rate", code: 104, ran: true},
		{kind: "earlier", want: "is of a process that began before this cell", ran: true},
		{kind: "silent", want: "handleSummary", ran: true},
		{kind: "thresholds", code: 99, ran: true, result: true},
		{kind: "good", reset: "echo wiping; exit 3", want: "--reset failed: exit status 3", code: -1},
		{kind: "good", before: "exit 4", want: "--before-cell failed: exit status 4", code: -1},
		{kind: "good", reset: `test "$KIND" = good`, before: `test "$KIND" = good`, ran: true, result: true},
	} {
		r := runnerOf(t)
		r.Reset, r.BeforeCell, r.Pause = c.reset, c.before, time.Millisecond
		o, err := r.Run(t.Context(), cellOf(c.kind))
		if err != nil || !strings.Contains(o.Error, c.want) || (o.Error == "") != c.result || (o.Result != nil) != c.result || o.ExitCode != c.code {
			t.Errorf("%+v: %+v, %v", c, o, err)
		}
		log, err := os.ReadFile(filepath.Join(r.Path(cellOf(c.kind)), LogFile))
		if err != nil || strings.Contains(string(log), "running script.js") != c.ran || strings.Contains(string(log), "wiping") != strings.Contains(c.reset, "wiping") {
			t.Errorf("%+v: %s %v", c, log, err)
		}
	}
	r := runnerOf(t)
	r.K6 = filepath.Join(t.TempDir(), "nothing")
	if o, err := r.Run(t.Context(), cellOf("good")); err != nil || !strings.Contains(o.Error, "no such file") {
		t.Errorf("%+v %v", o, err)
	}
	if err := os.WriteFile(r.Folder, nil, 0o600); err == nil {
		t.Fatal("the folder of cells is not there")
	}
	r.Folder = filepath.Join(os.Args[0], "cells") // below a file
	if _, err := r.Run(t.Context(), cellOf("good")); err == nil {
		t.Error("a study goes on that can write nothing")
	}
}

// When its context ends, the process is interrupted, and waited for; what it leaves then is no result of the study.
func TestACellIsCut(t *testing.T) {
	r, c := runnerOf(t), cellOf("waits")
	ctx, cancel := context.WithCancel(t.Context())
	log := r.Path(c) + ".log"
	go func() {
		for {
			if text, _ := os.ReadFile(log); strings.Contains(string(text), "waiting") {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	o, err := r.Run(ctx, c)
	if err != nil || !o.Cut || o.Result != nil || o.ExitCode != 105 {
		t.Errorf("%+v %v", o, err)
	}
}

func TestArgumentsThatSetWhatTheStudySets(t *testing.T) {
	sets := []Setting{{"RATE", []string{"1"}}}
	for _, args := range [][]string{{"-e", "RATE=5"}, {"--env", "RATE=5"}, {"--env=RATE=5"}, {"-eRATE=5"}, {"-q", "-e", "BROKER_REPORT_NAME=x"}} {
		if err := CheckArgs(args, sets); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	for _, args := range [][]string{nil, {"-e", "OTHER=RATE"}, {"--vus", "5"}, {"-e"}, {"--exit-on-running"}} {
		if err := CheckArgs(args, sets); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// What a script reads is known by its text, and what it refuses before anything runs.
func TestWhatAScriptReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script.js")
	if err := os.WriteFile(path, []byte("const k = __ENV.KIND, s = __ENV['SIZE'], r = number('RATE', 1);\nfunction f() { return __ENV?.LATE; }"), 0o600); err != nil {
		t.Fatal(err)
	}
	k6 := runnerOf(t).K6
	s, err := Inspect(t.Context(), k6, path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Names, []string{"KIND", "LATE", "RATE", "SIZE"}) || len(s.Hash) != 64 {
		t.Errorf("%+v", s)
	}
	if err := s.Check(t.Context(), k6, planOf(t, 1, 1, "KIND=good,silent", "LATE=1", "K6_VUS=1,2", "BROKER_WARMUP=1s")); err != nil {
		t.Error(err)
	}
	if err := s.Check(t.Context(), k6, planOf(t, 1, 1, "RAT=1")); err == nil || !strings.Contains(err.Error(), "script.js never reads that: it reads KIND, LATE, RATE, SIZE") {
		t.Error(err)
	}
	t.Setenv("BROKER_PROCESSES", "2") // which no cell has
	err = s.Check(t.Context(), k6, planOf(t, 1, 1, "RATE=1,2", "KIND=good,silent,refused"))
	if err == nil || err.Error() != `with RATE=1 KIND=refused: k6 inspect: KIND: "refused" is none` {
		t.Error(err)
	}
}

// Cells are tests of their own, whatever the environment says of the study's process.
func TestACellIsATestOfItsOwn(t *testing.T) {
	t.Setenv("BROKER_RUN", "nightly")
	t.Setenv("BROKER_PROCESSES", "2")
	t.Setenv("BROKER_REPORT", "off")
	t.Setenv("KIND", "fails")
	r := runnerOf(t)
	r.BeforeCell = `echo "of $BROKER_RUN,$BROKER_PROCESSES,$BROKER_REPORT."`
	if o, err := r.Run(t.Context(), cellOf("good")); err != nil || o.Error != "" {
		t.Error(o, err)
	}
	if log, _ := os.ReadFile(filepath.Join(r.Path(cellOf("good")), LogFile)); !strings.Contains(string(log), "of ,,on.") {
		t.Errorf("%s", log)
	}
}
