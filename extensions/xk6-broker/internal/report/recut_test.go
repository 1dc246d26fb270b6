package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/reason/reasontest"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// saved is the folder of the stalled run, with one topic, and what was read of it again.
func saved(t *testing.T, change func(*result.Result)) (string, *result.Result) {
	t.Helper()
	r, logs := stalledWithLogs()
	r.Topics = r.Topics[:1]
	change(r)
	f := report.Folder{Dir: t.TempDir(), Name: "stalled"}
	if err := f.Write(r, logs, nil); err != nil {
		t.Fatal(err)
	}
	read, err := report.Read(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	return f.Path(), read
}

// Parts of a run that are cut afterwards add up to it, bucket by bucket; each has what was measured in its seconds.
func TestARunIsCutAfterwards(t *testing.T) {
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
			if p := r.Topics[0].Phases[r.Leading].Percentiles["publish_latency"]; len(p) == 0 || p[0].Value < 1 {
				t.Errorf("it has no percentiles: %v", p)
			}
			if s := r.Phase("10 s to 20 s").Stretches[0]; s != (result.Stretch{From: 10, To: 20}) || w.Counts["confirmed"] != 12000 || len(w.Groups[0].Trends) != 2 {
				t.Errorf("%v: %v, of the group %d", s, w.Counts, len(w.Groups[0].Trends))
			}
		}
	}
	for name, h := range measured.Topics[0].Trends {
		if !whole[name].SameDistribution(h) {
			t.Errorf("%s: the parts have %d values, the whole %d", name, whole[name].Count(), h.Count())
		}
	}
	if counts["sent"] != 20000 || counts["confirmed"] != 20000 {
		t.Errorf("%v", counts)
	}
}

func TestWhatCannotBeCutExactlyIsRefused(t *testing.T) {
	for want, c := range map[string]struct {
		change func(*result.Result)
		damage func(t *testing.T, log string)
		from   float64
		to     float64
	}{
		"cannot be cut at 10 s: its history, where seconds of a long run are joined, has no instant there; the nearest are 8 s and 12 s": {change: func(r *result.Result) {
			h := r.Topics[0].History
			long := result.Point{At: 12, Seconds: 4, Counts: map[string]int64{}}
			r.Topics[0].History = append(append(append([]result.Point{}, h[:8]...), long), h[12:]...)
		}, from: 0, to: 10},
		"cannot be cut at 40 s: its history, where seconds of a long run are joined, has no instant there; it has from 0 s to 20 s": {from: 10, to: 40},
		"from 10.1 s to 10.3 s nothing was collected": {from: 10.1, to: 10.3},
		"does not tell which of receive, send they were": {change: func(r *result.Result) {
			r.Topics[0].Errors = append([]result.ErrorCount{{Op: "receive", Kind: "timeout", Count: 1}}, r.Topics[0].Errors...)
		}, from: 8, to: 12},
		"there is no ": {damage: func(t *testing.T, log string) {
			t.Helper()
			if err := os.Remove(log); err != nil {
				t.Fatal(err)
			}
		}, to: 10},
		"does not have all of the run": {damage: func(t *testing.T, log string) {
			t.Helper()
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.SplitAfter(string(text), "\n")
			if err := os.WriteFile(log, []byte(strings.Join(lines[:len(lines)-3], "")), 0o600); err != nil {
				t.Fatal(err)
			}
		}, to: 10},
		"is of a group that it does not tell": {change: func(r *result.Result) {
			r.Topics[0].Groups = append(r.Topics[0].Groups, result.Group{Account: result.Account{Group: "audit"}})
		}, to: 10},
	} {
		if c.change == nil {
			c.change = func(*result.Result) {}
		}
		folder, r := saved(t, c.change)
		if c.damage != nil {
			logs, err := filepath.Glob(filepath.Join(folder, "*.publish_latency.hlog"))
			if err != nil || len(logs) != 1 {
				t.Fatal(logs, err)
			}
			c.damage(t, logs[0])
		}
		if err := report.Recut(folder, r, c.from, c.to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Of what several processes measured, a part has what their intervals have that ended in it, and says so.
func TestAPartOfSeveralProcesses(t *testing.T) {
	for _, several := range []bool{true, false} {
		folder, r := saved(t, func(r *result.Result) {
			if several {
				r.Environment["processes"] = "3"
			}
		})
		if err := report.Recut(folder, r, 10, 20); err != nil {
			t.Fatal(err)
		}
		if n, seconds := r.Led().WentOn("confirmed"); n == 0 || (seconds == 0) != several { // which are not those of just that time
			t.Errorf("several %v: confirmed %v in %v s", several, n, seconds)
		}
		if reasontest.Has(r.Verdict.Notes(), "over-time why=intervals phase=10_s_to_20_s") != several {
			t.Errorf("several %v: %q", several, reasontest.Codes(r.Verdict.Reasons))
		}
	}
}

// A run can be cut from its start to its end, whenever its first interval begins.
func TestAPartFromTheStart(t *testing.T) {
	folder, r := saved(t, func(r *result.Result) { r.Seconds = 23 })
	for i := range r.Topics[0].History {
		r.Topics[0].History[i].At += 2
	}
	for part, want := range map[[2]float64]int64{{0, 10}: 8000, {10, 23}: 12_000} {
		if err := report.Recut(folder, r, part[0], part[1]); err != nil && strings.Contains(err.Error(), "cannot be cut") {
			t.Error(err)
		}
		if s := r.Phase(r.Leading); s != nil && r.Topics[0].Phases[r.Leading].Counts["sent"] != want {
			t.Errorf("%v: %v", part, r.Topics[0].Phases[r.Leading].Counts)
		}
	}
}

// A topic that was used in a part of the run only, as by one of several processes, had nothing before and after that, wherever the run is cut.
func TestARunIsCutWhereATopicWasNotUsed(t *testing.T) {
	folder, r := saved(t, func(r *result.Result) {
		brief := unread()
		brief.Trends = map[string]*hist.Histogram{}
		brief.History = []result.Point{{At: 3, Seconds: 1, Counts: map[string]int64{"sent": 10}}, {At: 4, Seconds: 1, Counts: map[string]int64{"sent": 20}}}
		r.Topics = append(r.Topics, brief)
	})
	for part, want := range map[[2]float64]int64{{0, 10}: 30, {3, 20}: 20, {5, 9}: 0} {
		if err := report.Recut(folder, r, part[0], part[1]); err != nil {
			t.Fatal(err)
		}
		if n := r.Topics[1].Phases[r.Leading].Counts["sent"]; n != want {
			t.Errorf("from %v to %v s: sent %d, want %d", part[0], part[1], n, want)
		}
	}
}

// Of several processes, what is written of the hiccups that befell each one's latencies is what their doubt is of when it is read, and when it is cut.
func TestDoubtOfAGroupSurvivesItsFile(t *testing.T) {
	folder, r := saved(t, func(r *result.Result) {
		standstill := &hist.Histogram{}
		standstill.RecordN(int64(100*time.Millisecond), r.Topics[0].Trends["e2e_latency"].Count())
		r.Topics[0].Groups[0].Trends["e2e_latency"] = r.Topics[0].Trends["e2e_latency"]
		r.Topics[0].Groups[0].Hiccups = map[string]*hist.Histogram{"e2e_latency": standstill}
	})
	if err := report.Recut(folder, r, 10, 20); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]*result.Result{"whole": r, "cut": r.Led()} {
		topic := of.Topics[0]
		e2e, group, publish := topic.Percentiles["e2e_latency"][0], topic.Groups[0].Percentiles["e2e_latency"][0], topic.Percentiles["publish_latency"][0]
		if e2e.Believed || group.Believed || !publish.Believed {
			t.Errorf("%s: the medians are %+v and %+v, of publish latency %+v", name, e2e, group, publish)
		}
	}
}
