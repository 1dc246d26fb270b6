package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

const probed = `
import broker from 'k6/x/broker';
const p = broker.connect('embedded-nats:').producer('probed');
const rate = Number(__ENV.RATE), duration = __ENV.DURATION;
export default async function () { await p.produce({ rate, duration }); }
export { handleSummary } from 'k6/x/broker';
`

// A mistake is found before anything runs, and before there is a folder.
func TestMistakesInACapacity(t *testing.T) {
	t.Parallel()
	path := harness.Script(t, probed)
	dir := t.TempDir()
	out := filepath.Join(dir, "study")
	for want, args := range map[string][]string{
		"no objective: give one":              {},
		"there is no \\\"e2e_latncy":          {"--objective", "e2e_latncy p99 < 1s"},
		"it is not understood":                {"--objective", "lost"},
		"\\\"1\\\" is no duration":            {"--objective", "e2e_latency p99 < 1"},
		"must be an upper limit":              {"--objective", "lost < 0"},
		"an upper limit of a latency":         {"--objective", "e2e_latency p99 > 1s"},
		"or of one of lost":                   {"--objective", "confirmed rate < 5"},
		"allowed are --from from 1 on":        {"--objective", "lost == 0", "--from", "0"},
		"MESSAGES: the script never reads it": {"--objective", "lost == 0", "--rate-setting", "MESSAGES"},
		"there is no study in":                {"--objective", "lost == 0", "--resume"},
		"-e after --: set the variable with":  {"--objective", "lost == 0", "--", "-e", "RATE=2"},
	} {
		r := harness.K6(t, []string{"RATE=1", "DURATION=1s"}, append([]string{"x", "broker", "capacity", path, "--out", out}, args...)...)
		if r.Code == 0 || !strings.Contains(r.Stderr, want) {
			t.Errorf("%v: no %q in %v", args, want, r)
		}
	}
	if r := harness.K6(t, nil, "x", "broker", "capacity", path, "--objective", "lost == 0", "--out", dir); r.Code == 0 || !strings.Contains(r.Stderr, "exists already") {
		t.Error(r)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("there is a folder of a study that never began")
	}
}
