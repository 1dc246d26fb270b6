package report_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/account"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason/reasontest"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// shift is how much later the second of two processes begins.
const shift = 2300 * time.Millisecond

// processes are two of one test, as they are read from their folders; what a folder lacks is removed from it.
func processes(t *testing.T, lacks ...string) (parts []result.Part) {
	t.Helper()
	dir := t.TempDir()
	for i, name := range []string{"one", "two"} {
		r, logs := stalledFrom(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(i) * shift))
		r.Name, r.Instance, r.Topics = name, uint32(i+1), r.Topics[:1]
		f := report.Folder{Dir: dir, Name: name}
		if err := f.Write(r, logs, &account.Ledger{Version: account.LedgerVersion, Run: r.Run, Instance: r.Instance}); err != nil {
			t.Fatal(err)
		}
		for _, file := range lacks {
			if folder, file, _ := strings.Cut(file, "/"); folder == name {
				if err := os.Remove(filepath.Join(f.Path(), file)); err != nil {
					t.Fatal(err)
				}
			}
		}
		p, err := report.ReadPart(f.Path())
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, p)
	}
	return parts
}

// whole merges them into a folder.
func whole(t *testing.T, parts []result.Part) (folder string, merged *result.Result) {
	t.Helper()
	merged, err := result.Merge(parts, result.Siblings{Processes: 2})
	if err != nil {
		t.Fatal(err)
	}
	f := report.Folder{Dir: t.TempDir(), Name: "both"}
	if err := f.Write(merged, merged.Logs, nil); err != nil {
		t.Fatal(err)
	}
	if merged, err = report.Read(f.Path()); err != nil {
		t.Fatal(err)
	}
	return f.Path(), merged
}

const ofPublish = "orders___script_.publish_latency.hlog"

// The second process begins 2.3 s after the first: its intervals are in those of the whole in which they end, which is 3 s after its own numbers.
func TestOverTimeTheWholeIsTheSum(t *testing.T) {
	parts := processes(t)
	want := map[float64]*hist.Histogram{} // by the end of the interval
	for i, p := range parts {
		for line, err := range p.Log(&p.Result.Topics[0], 0) {
			if err != nil {
				t.Fatal(err)
			}
			end := math.Round(line.To.Sub(p.Result.Started).Seconds()) + float64(3*i)
			want[end] = hist.Merged(want[end], line.Histogram)
		}
	}
	folder, r := whole(t, parts)
	topic := r.Topics[0]
	var total uint64
	for _, s := range topic.OverTime["publish_latency"] {
		h := &hist.Histogram{}
		for end := s.At - s.Seconds + 1; end <= s.At; end++ {
			h.Merge(want[end])
		}
		if s.Count != h.Count() || s.P50 != h.Quantile(0.5) || s.P99 != h.Quantile(0.99) || s.Max != h.Max() {
			t.Errorf("at %v s: %+v, want %d, p50 %d, p99 %d", s.At, s, h.Count(), h.Quantile(0.5), h.Quantile(0.99))
		}
		total += s.Count
	}
	if total != topic.Trends["publish_latency"].Count() || total != 40_000 {
		t.Errorf("%d publish latencies over time, want %d", total, topic.Trends["publish_latency"].Count())
	}
	if reasontest.Has(r.Verdict.Reasons, "over-time") {
		t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
	}
	sum, counts := map[string]*hist.Histogram{}, map[string]int64{}
	for _, part := range [][2]float64{{0, 7}, {7, 12}, {12, 23}} {
		cut, err := report.Read(folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := report.Recut(folder, cut, part[0], part[1]); err != nil {
			t.Fatal(err)
		}
		w := cut.Topics[0].Phases[cut.Leading]
		for name, h := range w.Trends {
			sum[name] = hist.Merged(sum[name], h)
		}
		for name, n := range w.Counts {
			counts[name] += n
		}
		if n := w.Trends["publish_latency"].Count(); n != uint64(w.Counts["confirmed"]) {
			t.Errorf("from %v to %v: %d publish latencies, %d confirmed", part[0], part[1], n, w.Counts["confirmed"])
		}
	}
	for name, h := range sum {
		if !h.SameDistribution(topic.Trends[name]) {
			t.Errorf("the parts of %s do not add up", name)
		}
	}
	if counts["sent"] != 40_000 || counts["confirmed"] != 40_000 {
		t.Errorf("%v", counts)
	}
}

// A process that left no log of a latency, or not all of it, is named, and the quantiles of that latency stay the worst of any.
func TestWhereALogIsMissingTheWholeSaysSo(t *testing.T) {
	folder, r := whole(t, processes(t, "two/"+ofPublish))
	if _, err := os.Stat(filepath.Join(folder, ofPublish)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a log of a part: %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "orders___script_.e2e_latency.hlog")); err != nil {
		t.Error(err)
	}
	says := func(r *result.Result, what string) bool {
		return slices.ContainsFunc(r.Verdict.Notes(), func(n reason.Reason) bool {
			return n.Code == reason.OverTime && strings.HasPrefix(n.Word("detail"), "process 2 (two): ") && strings.Contains(n.Word("detail"), what)
		})
	}
	if !says(r, "there is no ") {
		t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
	}
	var total uint64
	for _, s := range r.Topics[0].OverTime["publish_latency"] {
		total += s.Count
	}
	if total != 40_000 {
		t.Errorf("%d publish latencies over time", total)
	}
	if err := report.Recut(folder, r, 5, 10); err == nil || !strings.Contains(err.Error(), "there is no ") {
		t.Errorf("a part of it was cut out: %v", err)
	}
	parts := processes(t)
	parts[1].Result.Topics[0].Trends["publish_latency"].Record(5)
	if _, r := whole(t, parts); !says(r, "does not have all that it measured") {
		t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
	}
	parts[1].Log = nil
	if _, r := whole(t, parts); !says(r, "it left no interval logs") {
		t.Errorf("%q", reasontest.Codes(r.Verdict.Reasons))
	}
}
