package report_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/recording"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/verdict"
)

// process is the folder of one of two processes of a test. The second begins 2.3 s after the first.
func process(t *testing.T, n int) string {
	t.Helper()
	r := stalledFrom(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(n) * 2300 * time.Millisecond))
	r.Name, r.Instance, r.Topics = []string{"one", "two"}[n], uint32(n+1), r.Topics[:1] //gosec:disable G115 -- a small number
	f := report.Folder{Dir: t.TempDir(), Name: r.Name}
	if err := f.Write(r, &account.Ledger{Version: account.LedgerVersion, Run: r.Run, Instance: r.Instance}); err != nil {
		t.Fatal(err)
	}
	return f.Path()
}

// linesOf reads an interval log.
func linesOf(t *testing.T, text string) (all []*hdrhistogram.Histogram) {
	t.Helper()
	for reader := hdrhistogram.NewHistogramLogReader(strings.NewReader(text)); ; {
		line, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if line == nil {
			return all
		}
		all = append(all, line)
	}
}

func TestReadPart_TwoFolders_MergedIsTheSum(t *testing.T) {
	var parts []verdict.Part
	whole := map[string]*hist.Histogram{}
	for n := range 2 {
		p, err := report.ReadPart(process(t, n))
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, p)
		for name, h := range p.Result.Topics[0].Trends {
			whole[name] = hist.Merged(whole[name], h)
		}
	}
	merged, err := verdict.Merge(parts, verdict.Siblings{Processes: 2})
	if err != nil {
		t.Fatal(err)
	}
	f := report.Folder{Dir: t.TempDir(), Name: "both"}
	if err := f.Write(merged, nil); err != nil {
		t.Fatal(err)
	}
	read, err := report.Read(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	topic := read.Topics[0]
	for name, h := range whole {
		var overTime uint64
		for _, s := range topic.OverTime[name] {
			overTime += s.Count
		}
		if string(h.Pack().HDR) != string(topic.Trends[name].Pack().HDR) || overTime != h.Count() {
			t.Errorf("%s: %d values, %d over time, want %d", name, topic.Trends[name].Count(), overTime, h.Count())
		}
	}
	if topic.Counts["sent"] != 40_000 || topic.Counts["confirmed"] != 40_000 {
		t.Errorf("%v", topic.Counts)
	}
	text, err := os.ReadFile(filepath.Join(f.Path(), "orders___script_.publish_latency.hlog"))
	if err != nil {
		t.Fatal(err)
	}
	var logged int64
	for _, line := range linesOf(t, string(text)) {
		logged += line.TotalCount()
	}
	if logged != 40_000 {
		t.Errorf("%d values in the interval log", logged)
	}
	if _, err := os.Stat(filepath.Join(f.Path(), report.RecordingFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the whole has a recording: %v", err)
	}
}

func TestReadPart_NoRecording_Named(t *testing.T) {
	folder := process(t, 0)
	path := filepath.Join(folder, report.RecordingFile)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := report.ReadPart(folder); err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

// What is measured of a closed loop, and of each of several groups, has a tag of its own.
func TestWriteLog_GroupsAndLoops_Tagged(t *testing.T) {
	h := &hist.Histogram{}
	h.RecordN(1000, 5)
	i := &recording.Interval{From: 0, To: int64(time.Second)}
	for _, group := range []string{"", "audit", "the workers"} {
		rec := recording.Record{Key: recording.Key{Topic: "orders", Group: group}}
		for l := range rec.Latencies {
			if group != "" {
				rec.Latencies[l][recording.E2ELatency] = h.Pack()
			} else {
				rec.Latencies[l][recording.PublishLatency] = h.Pack()
			}
		}
		i.Records = append(i.Records, rec)
	}
	all := &recording.Recording{}
	all.Add(i)
	group := func(name string) result.Group { return result.Group{Account: account.Account{Group: name}} }
	r := &result.Result{Started: time.Unix(0, 0), Topics: []result.Topic{{Topic: "orders", Groups: []result.Group{group("audit"), group("the workers")}}}}
	r.Measure(all)
	for trend, want := range map[recording.Trend]string{
		recording.PublishLatency: " closed", recording.E2ELatency: " closed",
	} {
		var text strings.Builder
		if err := r.WriteLog(&text, &r.Topics[0], trend); err != nil {
			t.Fatal(err)
		}
		var tags []string
		for _, line := range linesOf(t, text.String()) {
			tags = append(tags, line.Tag())
		}
		if got := strings.Join(tags, " "); got != want {
			t.Errorf("%s: %q, want %q", trend, got, want)
		}
	}
}
