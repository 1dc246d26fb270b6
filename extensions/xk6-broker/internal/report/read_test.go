package report_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

func TestDamagedResultsAreRefusedWithTheReason(t *testing.T) {
	text := string(encode(t, stalled()))
	for _, c := range []struct{ old, changed, want string }{
		{text, "", "no result"},
		{text, "[]", "a result of version 0"},
		{text, "{}", "a result of version 0"},
		{text, text + "{}", "no result"},
		{`"version": 3`, `"version": 2`, "a result of version 2: this program reads version 3"},
		{`"count": 20000`, `"count": 20001`, "20000 values"},
		{`"jetstream://127.0.0.1:4222"`, `5`, "damaged"},
		{`"e2e_time": {`, `"e2e_tame": null, "e2e_time": {`, `"e2e_tame" is empty`},
	} {
		damaged := strings.Replace(text, c.old, c.changed, 1)
		if damaged == text {
			t.Errorf("there is no %s", c.old)
			continue
		}
		if _, err := report.ReadSummary(strings.NewReader(damaged)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s instead of %s: error %v, want %q", c.changed, c.old, err, c.want)
		}
	}
	if _, err := report.Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "summary.json") {
		t.Errorf("an empty folder: error %v", err)
	}
}

// Whatever the reader accepts can be shown, and survives being written and read again.
func FuzzSummary(f *testing.F) {
	r := stalled()
	topic := &r.Topics[0]
	topic.History = topic.History[8:10] // short, for a fuzzer works through every byte
	for name, summaries := range topic.OverTime {
		topic.OverTime[name] = summaries[7:9]
	}
	for name := range topic.Trends {
		topic.Trends[name] = &hist.Histogram{}
		topic.Trends[name].RecordN(1500, 200)
	}
	verdict.Describe(r)
	f.Add(encode(f, r))
	r.Topics = r.Topics[1:]
	f.Add(encode(f, r))
	r.Topics = nil
	f.Add(encode(f, r))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := report.ReadSummary(bytes.NewReader(text))
		if err != nil {
			return
		}
		if err := report.Text(io.Discard, r); err != nil {
			t.Error(err)
		}
		if err := report.HTML(io.Discard, r); err != nil {
			t.Error(err)
		}
		again, err := report.ReadSummary(bytes.NewReader(encode(t, r)))
		if err != nil {
			t.Fatal(err)
		}
		if !sameResult(t, r, again) {
			t.Error("another result when it is read again")
		}
	})
}
