package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.k6.io/k6/v2/cmd/state"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/hist"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/result"
)

// A phase is printed before the whole and has a page of its own; what cannot be is an error that says what there is.
func TestAPartOfARunIsReported(t *testing.T) {
	h := &hist.Histogram{}
	h.RecordN(1e6, 100)
	trends := map[string]*hist.Histogram{"publish_latency": h}
	topic := result.Topic{
		Topic: "orders", OpenLoop: true, Options: result.Uses{}, Counts: map[string]int64{"sent": 100}, Trends: trends, Groups: []result.Group{}, History: []result.Point{{At: 2, Seconds: 2}},
		Phases: map[string]result.Window{"peak": {Counts: map[string]int64{"sent": 100}, Trends: trends}},
	}
	r := &result.Result{Version: result.Version, Seconds: 2, Topics: []result.Topic{topic}, Phases: []result.Phase{{Name: "peak", Stretches: []result.Stretch{{From: 0, To: 2}}, Seconds: 2}}}
	f := report.Folder{Dir: t.TempDir(), Name: "run"}
	if err := f.Write(r, nil); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		gs := state.NewGlobalState(t.Context())
		gs.Stdout.Writer, gs.Stderr.Writer = &out, &out
		c := newReport(gs)
		c.SetArgs(append(args, f.Path()))
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.Execute()
		return out.String(), err
	}
	text, err := run("--phase", "peak")
	if err != nil || !strings.Contains(text, "  peak: 0 s to 2 s\n") || !strings.Contains(text, "the whole run: 2 s") {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := os.Stat(filepath.Join(f.Path(), "report-peak.html")); err != nil {
		t.Error(err)
	}
	for want, args := range map[string][]string{
		`there was no phase "pek": there were peak`: {"--phase", "pek"},
		"give --phase, or --from and --to":          {"--phase", "peak", "--to", "1s"},
		"recording.bin":                             {"--to", "2s"},
	} {
		if _, err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
