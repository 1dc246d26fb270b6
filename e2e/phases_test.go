package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// A run with a warm-up and a phase of the script: k6 obeys the thresholds on the phases, the terminal begins with the measured window, what
// the phases counted adds up to the whole, and parts are shown afterwards.
func TestARunHasPhases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	test := harness.Script(t, `import broker from 'k6/x/broker';
export { handleSummary } from 'k6/x/broker';
const conn = broker.connect('embedded:', { warmup: '1h' }); // which the environment overrules
const p = conn.producer('phases');
export const options = {
  scenarios: { all: { executor: 'per-vu-iterations', vus: 1, iterations: 1 } },
  thresholds: { 'broker_publish_latency{phase:measured}': ['p(50)<60000'], 'broker_sent{phase:tail}': ['count==100', 'rate<0.001'], 'broker_sent{phase:warmup}': ['count>0'] },
};
export async function setup() { await conn.createTopic('phases'); }
export default async function () {
  const { confirmed } = await p.produce({ rate: 500, duration: '4s' });
  if (confirmed !== 2000) throw new Error(confirmed);
  broker.phase('tail');
  await p.produce({ count: 100 });
}
`)
	r := harness.K6(t, []string{"BROKER_WARMUP=1s", "BROKER_REPORT_NAME=phases", "BROKER_REPORT_DIR=" + dir}, "run", test)
	if r.Code != 99 || !strings.Contains(r.Stdout, "✗ 'rate<0.001'") || !strings.Contains(r.Stdout, "✓ 'count==100'") || !strings.Contains(r.Stdout, "✓ 'p(50)<60000'") {
		t.Errorf("the one threshold that does not hold, on a rate in a phase: %v", r)
	}
	lead, whole := strings.Index(r.Stdout, "\n  measured: "), strings.Index(r.Stdout, "\n  the whole run: ")
	if lead < 0 || whole < lead {
		t.Errorf("the measured window does not lead: %v", r)
	}
	text, err := os.ReadFile(filepath.Join(dir, "phases", "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Leading string
		Phases  []struct{ Name string }
		Topics  []struct {
			Counts map[string]int64
			Phases map[string]struct{ Counts map[string]int64 }
		}
	}
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	of := result.Topics[0]
	var sum int64
	for _, w := range of.Phases {
		sum += w.Counts["confirmed"]
	}
	if warm := of.Phases["warmup"].Counts["confirmed"]; result.Leading != "measured" || len(result.Phases) != 3 || sum != 2100 || of.Counts["confirmed"] != sum || of.Phases["tail"].Counts["sent"] != 100 || warm == 0 || warm > 1500 {
		t.Errorf("%+v", result)
	}
	for want, args := range map[string][]string{"\n  tail: ": {"--phase", "tail"}, "\n  from ": {"--from", "2s", "--to", "3s"}} {
		if r := harness.K6(t, nil, append([]string{"x", "broker", "report", filepath.Join(dir, "phases")}, args...)...); r.Code != 0 || !strings.Contains(r.Stdout, want) {
			t.Errorf("%v: %v", args, r)
		}
	}
}
