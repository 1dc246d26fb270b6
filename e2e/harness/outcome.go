package harness

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/summary"
)

// Outcome is the result of a script that ends with LeaveOutcome.
type Outcome struct {
	Metrics map[string]struct {
		Values     map[string]float64 `json:"values"`
		Thresholds map[string]struct {
			OK bool `json:"ok"`
		} `json:"thresholds"`
	} `json:"metrics"`
	Result summary.Summary
}

// LeaveOutcome is a handleSummary that writes the Outcome to the file that OUTCOME names.
const LeaveOutcome = `
export function handleSummary(data) {
  return { [__ENV.OUTCOME]: JSON.stringify({ metrics: data.metrics, result: broker.result() }) };
}
`

// RunToOutcome runs a script, to which it adds the import of the module and LeaveOutcome.
func RunToOutcome(t *testing.T, text string, env ...string) (Outcome, Result) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outcome.json")
	script := Script(t, "import broker from 'k6/x/broker';\n"+text+LeaveOutcome)
	r := K6(t, append(env, "OUTCOME="+path), "run", "--quiet", script)
	var o Outcome
	if err := json.Unmarshal(Read(t, path), &o); err != nil {
		t.Fatalf("%v\n%v", err, r)
	}
	return o, r
}
