package cells

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// The test's own program is k6, too, where it is called as that: what it does is what the setting KIND says.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && slices.Contains([]string{"run", "deps"}, os.Args[1]) {
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

func studyOf(t *testing.T) *Study {
	t.Helper()
	return &Study{Folder: t.TempDir()}
}

func cellOf(kind string) Cell {
	return Cell{Script: "script.js", Repetition: 1, Settings: Settings{"KIND": kind}, Folder: "1-KIND_" + kind}
}

// log is the output of a cell.
func log(t *testing.T, r *Study, c Cell) string {
	t.Helper()
	text, err := os.ReadFile(r.path(c) + LogSuffix)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func TestRun_Cell_LeavesResultAndLog(t *testing.T) {
	r, c := studyOf(t), cellOf("good")
	for range 2 { // the second run replaces the first
		o, err := r.run(t.Context(), c)
		if err != nil || o.Error != "" || o.Result == nil || o.ExitCode != 0 {
			t.Fatalf("%+v %v", o, err)
		}
	}
	if text := log(t, r, c); strings.Count(text, "running script.js as good in 1-KIND_good") != 1 {
		t.Error(text)
	}
	if entries, _ := os.ReadDir(filepath.Join(r.Folder, Folder)); len(entries) != 2 {
		t.Error(entries)
	}
}

// The failure of a cell is in its outcome, and is no error of the study.
func TestRun_FailedCell_Outcome(t *testing.T) {
	for _, c := range []struct {
		kind, reset, want string
		code              int
		ran, result       bool
	}{
		{kind: "fails", want: `k6 ended with exit code 107: "no broker at nats://xxxxx@h"`, code: 107, ran: true},
		{kind: "breaks", want: `k6 ended with exit code 107: "an exception"`, code: 107, ran: true}, // what it left is of no whole test
		{kind: "misconfigured", want: "scenario p has no rate", code: 104, ran: true},
		{kind: "earlier", want: "is older than the cell", ran: true},
		{kind: "silent", want: "handleSummary", ran: true},
		{kind: "thresholds", code: 99, ran: true, result: true},
		{kind: "good", reset: "echo wiping; exit 3", want: "--reset failed: exit status 3", code: -1},
		{kind: "good", reset: `test "$KIND" = good`, ran: true, result: true},
	} {
		r := studyOf(t)
		r.Reset = c.reset
		o, err := r.run(t.Context(), cellOf(c.kind))
		if err != nil || !strings.Contains(o.Error, c.want) || (o.Error == "") != c.result || (o.Result != nil) != c.result || o.ExitCode != c.code {
			t.Errorf("%+v: %+v, %v", c, o, err)
		}
		text := log(t, r, cellOf(c.kind))
		if strings.Contains(text, "running script.js") != c.ran || strings.Contains(text, "wiping") != strings.Contains(c.reset, "wiping") {
			t.Errorf("%+v: %s", c, text)
		}
	}
	r := studyOf(t)
	if _, err := r.run(t.Context(), cellOf("good")); err != nil {
		t.Fatal(err)
	}
	r.Folder = filepath.Join(os.Args[0], "cells") // below a file
	if _, err := r.run(t.Context(), cellOf("good")); err == nil {
		t.Error("a study goes on that can write nothing")
	}
}

// The end of the context interrupts the process. Its result is no result of the study.
func TestRun_ContextEnds_Stopped(t *testing.T) {
	r, c := studyOf(t), cellOf("waits")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if text, _ := os.ReadFile(r.path(c) + LogSuffix); strings.Contains(string(text), "waiting") {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	o, err := r.run(ctx, c)
	if !errors.Is(err, ErrStopped) || o.Result != nil || o.ExitCode != 105 {
		t.Errorf("%+v %v", o, err)
	}
}

func TestScript_Reads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script.js")
	if err := os.WriteFile(path, []byte("const k = __ENV.KIND, { SIZE, A } = __ENV, r = number('RATE', 1);"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"KIND": true, "SIZE": true, "A": true, "RATE": true, "K6_VUS": true, "BROKER_WARMUP": true, "RAT": false, "_": false, "BROKER_REPORT_DIR": false,
	} {
		if _, err := Script(t.Context(), path, []string{name}); (err == nil) != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	t.Setenv("SIZE", "5")
	t.Setenv("KIND", "good")
	facts, err := Script(t.Context(), path, []string{"KIND"})
	if err != nil || facts["environment SIZE"] != "5" || facts["environment KIND"] != "" {
		t.Error(facts, err)
	}
}

// A cell does not get the variables of the study's process that make it a part of another test.
func TestRun_EnvironmentOfStudy_NotInherited(t *testing.T) {
	t.Setenv("BROKER_RUN", "nightly")
	t.Setenv("BROKER_PROCESSES", "2")
	t.Setenv("BROKER_REPORT", "off")
	t.Setenv("KIND", "fails")
	r := studyOf(t)
	r.Reset = `echo "of $BROKER_RUN,$BROKER_PROCESSES,$BROKER_REPORT."`
	if o, err := r.run(t.Context(), cellOf("good")); err != nil || o.Error != "" {
		t.Error(o, err)
	}
	if text := log(t, r, cellOf("good")); !strings.Contains(text, "of ,,on.") {
		t.Error(text)
	}
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
