package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// warmed is a run whose first 5 s were slow: 1,000 of 11,000 messages took 100 ms, the others 1 ms.
func warmed() *result.Result {
	histogram := func(slow, fast uint64) map[string]*hist.Histogram {
		h := &hist.Histogram{}
		h.RecordN(100e6, slow)
		h.RecordN(1e6, fast)
		return map[string]*hist.Histogram{"publish_latency": h}
	}
	t := result.Topic{
		Broker: "nats://127.0.0.1:4222", Driver: "nats", Topic: "orders", Proofs: []result.Proof{}, Options: result.Uses{}, Errors: []result.ErrorCount{}, OpenLoop: true,
		Counts: map[string]int64{"due": 11000, "sent": 11000, "confirmed": 11000}, Trends: histogram(1000, 10000), History: []result.Point{}, OverTime: map[string][]result.Summary{},
		Spans:  map[string]result.Span{"sent": {First: 4, Last: 14.999}, "confirmed": {First: 4, Last: 15}},
		Groups: []result.Group{},
		Phases: map[string]result.Window{
			"warmup":   {Counts: map[string]int64{"due": 1000, "sent": 1000, "confirmed": 1000}, Errors: []result.ErrorCount{}, Trends: histogram(1000, 0), Groups: []result.WindowGroup{}},
			"measured": {Counts: map[string]int64{"due": 10000, "sent": 10000, "confirmed": 10000}, Errors: []result.ErrorCount{}, Trends: histogram(0, 10000), Groups: []result.WindowGroup{}},
		},
	}
	for at := 5.0; at <= 15; at++ {
		t.History = append(t.History, result.Point{At: at, Seconds: 1, Counts: map[string]int64{"confirmed": 1000}, ErrorKinds: map[string]int64{}})
	}
	t.History = append(t.History, result.Point{At: 20, Seconds: 1, Counts: map[string]int64{}, ErrorKinds: map[string]int64{}})
	r := &result.Result{
		Version: result.Version, Name: "warmed", Seconds: 20, Test: result.Test{Scenarios: []result.Scenario{}}, Thresholds: []result.Threshold{}, Checks: []result.Check{},
		Marks: []result.Annotation{}, Environment: map[string]string{}, Topics: []result.Topic{t},
		Phases: []result.Phase{
			{Name: "warmup", Stretches: []result.Stretch{{From: 0, To: 5}}, Seconds: 5},
			{Name: "measured", Stretches: []result.Stretch{{From: 5, To: 20}}, Seconds: 15},
		},
	}
	r.Leading = result.Measure
	verdict.Describe(r)
	verdict.Judge(r, verdict.Circumstances{})
	return r
}

// Where there is a measured window, the terminal and the page begin with it, and have the whole beside it.
func TestTheMeasuredWindowLeads(t *testing.T) {
	r := warmed()
	var text bytes.Buffer
	if err := report.Text(&text, r); err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(text.String(), "the whole run: 20 s", 2)
	if len(parts) != 2 {
		t.Fatalf("it does not speak of the whole:\n%s", &text)
	}
	for i, want := range [][]string{
		{"measured: 5 s to 20 s", "10000  1ms  1ms  1ms", "confirmed 10000", "rates: confirmed 1000/s", "verdict: valid, of the phase measured", "   warmup   1000"},
		{"11000  1ms  1ms  100ms  100ms  100ms", "confirmed 11000"},
	} {
		for _, w := range want {
			if !strings.Contains(parts[i], w) {
				t.Errorf("no %q in\n%s", w, parts[i])
			}
		}
	}
	var page bytes.Buffer
	if err := report.HTML(&page, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<h3>Latency <small>measured: 5 s to 20 s</small></h3>`, `<tr data-row="warmup">`, `<tr data-row="the whole run">`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// What is written of phases is read again as it was, and what no run can have written is refused.
func TestPhasesAreReadAsTheyWereWritten(t *testing.T) {
	r := warmed()
	read, err := report.ReadSummary(bytes.NewReader(encode(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	if !sameResult(t, r, read) {
		t.Error("it is another result")
	}
	for what, change := range map[string]func(*result.Result){
		`no phase "peak", which leads`: func(r *result.Result) { r.Leading = "peak" },
		`the trend "e2e" is empty`:     func(r *result.Result) { r.Topics[0].Phases["warmup"].Trends["e2e"] = nil },
	} {
		wrong := warmed()
		change(wrong)
		if _, err := report.ReadSummary(bytes.NewReader(encode(t, wrong))); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
