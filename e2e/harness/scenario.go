package harness

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// Scenario runs a script of the repository and returns its results. The run must succeed, except
// for thresholds on latencies: the speed of this machine is not tested.
func Scenario(t *testing.T, path string, env ...string) (Result, *summary.Summary) {
	t.Helper()
	dir := t.TempDir()
	r := K6(t, append(env, "BROKER_REPORT_DIR="+dir, "BROKER_REPORT_NAME=run"), "run", "--quiet", path)
	if r.Code != 0 && r.Code != 99 {
		t.Fatal(r)
	}
	s, err := summary.Read(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err, r)
	}
	slow := false
	for _, threshold := range s.Thresholds {
		if threshold.Held {
			continue
		}
		slow = true
		if !strings.Contains(threshold.Metric, "latency") {
			t.Errorf("%+v\n%v", threshold, r)
		}
	}
	if slow != (r.Code == 99) {
		t.Errorf("thresholds %+v\n%v", s.Thresholds, r)
	}
	return r, s
}
