package report_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// saved is the folder of the stalled run, with one topic, and what was read of it again.
func saved(t *testing.T, change func(*result.Result)) (string, *result.Result) {
	t.Helper()
	r := stalled()
	r.Topics = r.Topics[:1]
	change(r)
	f := report.Folder{Dir: t.TempDir(), Name: "stalled"}
	if err := f.Write(r, nil); err != nil {
		t.Fatal(err)
	}
	read, err := report.Read(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	return f.Path(), read
}

// Parts of a run that are cut afterwards add up to it, bucket by bucket; each has what was measured in its seconds.
func TestRecut_PartsOfAFolder_AddUp(t *testing.T) {
	whole := map[string]*hist.Histogram{}
	counts := map[string]int64{}
	var measured *result.Result
	for _, part := range [][2]float64{{0, 7.8}, {8.3, 10}, {10, 20}} {
		folder, r := saved(t, func(*result.Result) {})
		measured = r
		if err := report.Recut(folder, r, part[0], part[1]); err != nil {
			t.Fatal(err)
		}
		w := r.Topics[0].Phases[r.Leading]
		for name, h := range w.Trends {
			whole[name] = hist.Merged(whole[name], h)
		}
		for name, n := range w.Counts {
			counts[name] += n
		}
		if part[0] == 8.3 && (w.Counts["sent"] != 2000 || w.Counts["confirmed"] != 0 || len(w.Trends) != 0 || w.Errors[0].Count != 10) {
			t.Errorf("while nothing was answered: %v, %v", w.Counts, w.Errors)
		}
		if part[0] == 10 {
			if p := w.Percentiles["publish_latency"]; len(p) == 0 || p[0].Value < 1 {
				t.Errorf("it has no percentiles: %v", p)
			}
			if s := r.Phase("10.0 s to 20.0 s").Stretches[0]; s != (result.Stretch{From: 10, To: 20}) || w.Counts["confirmed"] != 12000 || len(w.Groups[0].Trends) != 2 {
				t.Errorf("%v: %v, of the group %d", s, w.Counts, len(w.Groups[0].Trends))
			}
		}
	}
	for name, h := range measured.Topics[0].Trends {
		if string(whole[name].Pack().HDR) != string(h.Pack().HDR) {
			t.Errorf("%s: the parts have %d values, the whole %d", name, whole[name].Count(), h.Count())
		}
	}
	if counts["sent"] != 20000 || counts["confirmed"] != 20000 {
		t.Errorf("%v", counts)
	}
}

func TestRecut_WithoutARecording_Refused(t *testing.T) {
	several, r := saved(t, func(r *result.Result) { r.Environment["processes"] = "3" })
	if err := report.Recut(several, r, 10, 20); err == nil {
		t.Error("a result of several processes was cut")
	}
	folder, r := saved(t, func(*result.Result) {})
	path := filepath.Join(folder, report.RecordingFile)
	if err := os.Truncate(path, 5); err != nil {
		t.Fatal(err)
	}
	if err := report.Recut(folder, r, 10, 20); err == nil {
		t.Error("a damaged recording was cut")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := report.Recut(folder, r, 10, 20); err == nil {
		t.Error("a result was cut without its recording")
	}
}
